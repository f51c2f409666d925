"""CodeInterpreter: code is recorded, run, and what came of it is recorded, answered or sent back to the model."""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from callboard.actors import CodeInterpreter, Planner, code_interpreter
from callboard.actors.kernel import KernelOptions, KernelResult
from callboard.actors.plugin import Plugin
from callboard.actors.sandbox import SandboxMissing
from callboard.actors.verification import DEFAULT_RULES
from callboard.runtime.chat_model import ChatRequest
from callboard.runtime.errors import RoleFailed
from callboard.runtime.event import DraftGrew
from callboard.runtime.leftovers import Holdings
from callboard.runtime.opening import open_conversation
from callboard.runtime.scripted_model import Reply, ScriptedModel, Step
from callboard.runtime.testing import Inject, every_interrupt_point, interrupt
from callboard.runtime.text import Span, cut

from .scenarios import ringing, scenario
from .test_planner import shown, to
from .test_role import lines, posts, said

OnOutput = Callable[[str], None]


def code(text: str) -> str:
    """A reply with code."""
    return said(thought="run it", reply_type="python", reply_content=text)


def words(text: str) -> str:
    """A reply in words."""
    return said(thought="say it", reply_type="text", reply_content=text)


def coding(*steps: Step) -> ScriptedModel:
    """A model for a CodeInterpreter."""
    return ScriptedModel({"CodeInterpreter": steps})


class FakeKernel:
    """Prints the words of the code with a second between them; `fail` among them is a failure."""

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.variables: list[Mapping[str, Any]] = []
        self.options: list[KernelOptions] = []

    async def run(self, code: str, on_output: OnOutput, variables: Mapping[str, Any]) -> KernelResult:
        self.codes.append(code)
        self.variables.append(variables)
        for number, word in enumerate(code.split()):
            if number:
                await self.pause()
            on_output(f"{word}\n")
        return KernelResult("\n".join(code.split()) + "\n", "failed" if "fail" in code else "done")

    async def pause(self) -> None:
        await trio.sleep(1)


class RingingKernel(FakeKernel):
    """Waits for the bell, as the roles of the scenarios do."""

    async def pause(self) -> None:
        await ringing()


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeKernel:
    """No process, no thread: all happens on the virtual clock."""
    return fake(monkeypatch, tmp_path, FakeKernel())


def fake(monkeypatch: pytest.MonkeyPatch, path: Path, kernel: FakeKernel) -> FakeKernel:
    """Puts a kernel in the place of the real one, and one folder in that of the working folders."""

    @asynccontextmanager
    async def folder(parent: Path | None = None) -> AsyncIterator[Path]:
        yield path

    @asynccontextmanager
    async def opened(folder: Path, options: KernelOptions) -> AsyncIterator[FakeKernel]:
        kernel.options.append(options)
        yield kernel

    monkeypatch.setattr("callboard.actors.code_interpreter.open_kernel", opened)
    monkeypatch.setattr("callboard.actors.code_interpreter.working_folder", folder)
    return kernel


async def test_words_are_the_answer(kernel: FakeKernel) -> None:
    with coding(words("It cannot be done.")) as model:
        async with open_conversation(CodeInterpreter(model)) as conversation:
            assert (await conversation.send("q")).message == "It cannot be done."
    assert len(posts(conversation)) == 2


async def test_code_is_recorded_before_it_runs_and_its_outcome_after(kernel: FakeKernel) -> None:
    async with open_conversation(CodeInterpreter(coding(code("42")), timeout=7)) as conversation:
        reply = await conversation.send("q")
    assert reply.message == "The code has run and printed:\n42"
    assert [str(one) for one in reply.attachment_list[2:]] == [
        "REPLY_CONTENT: 42",
        "EXECUTION_STATUS: SUCCESS",
        "EXECUTION_RESULT: 42",
    ]
    assert lines(conversation)[1:3] == [
        "CodeInterpreter>CodeInterpreter note [THOUGHT: run it] [REPLY_TYPE: python] [REPLY_CONTENT: 42]: ",
        "CodeInterpreter>CodeInterpreter note [EXECUTION_STATUS: SUCCESS] [EXECUTION_RESULT: 42]: ",
    ]
    assert [one.timeout for one in kernel.options] == [7]


async def test_a_failure_goes_back_to_the_model(kernel: FakeKernel) -> None:
    with coding(code("fail"), code("42")) as model:
        async with open_conversation(CodeInterpreter(model)) as conversation:
            assert "printed:\n42" in (await conversation.send("q")).message
    assert "execution_status: FAILURE\nexecution_result: fail" in model.requests[1].messages[-1].content


async def test_after_so_many_failures_the_last_is_the_answer(kernel: FakeKernel, autojump_clock: MockClock) -> None:
    with coding(code("fail one"), code("fail two")) as model:
        async with open_conversation(CodeInterpreter(model, most_attempts=2)) as conversation:
            reply = await conversation.send("q")
    assert reply.message == "After 1 that failed, the code failed and printed:\nfail\ntwo"
    assert reply.get_attachment("execution_status")[0].content == "FAILURE"


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (said(reply_type="shell", reply_content="ls"), "reply_type: Input should be 'python' or 'text'"),
        (said(reply_type="python", reply_content=""), "reply_content: must not be blank"),
        (said(reply_type="python"), "missing in 'response': reply_content"),
    ],
)
async def test_a_malformed_reply_is_put_back_to_the_model(reply: str, fault: str, kernel: FakeKernel) -> None:
    with coding(reply, words("x")) as model:
        async with open_conversation(CodeInterpreter(model)) as conversation:
            assert (await conversation.send("q")).message == "x"
    assert fault in model.requests[1].messages[-1].content
    assert not kernel.codes


@pytest.mark.parametrize("reason", ["length", "stop"])
@pytest.mark.parametrize("cut", [1, 2, 3, 5])
async def test_the_code_of_a_truncated_reply_is_never_run(reason: str, cut: int, kernel: FakeKernel) -> None:
    half = Reply(code("remove all")[:-cut], reason=reason)
    with coding(half, words("Not done.")) as model:
        async with open_conversation(CodeInterpreter(model)) as conversation:
            assert (await conversation.send("q")).message == "Not done."
    assert not kernel.codes


async def test_code_that_fails_in_the_same_way_is_not_run_a_third_time(kernel: FakeKernel) -> None:
    with coding(code("fail"), code("fail"), code("fail"), words("It fails.")) as model:
        async with open_conversation(CodeInterpreter(model)) as conversation:
            assert (await conversation.send("q")).message == "It fails."
    assert len(kernel.codes) == 2


async def test_an_interruption_keeps_what_was_printed(kernel: FakeKernel, autojump_clock: MockClock) -> None:
    with coding(code("one two three"), code("two")) as model:
        async with open_conversation(CodeInterpreter(model)) as conversation:
            started = conversation.communicate("q")
            await trio.sleep(1.5)
            conversation.intervene("Only two.")
            await started.reply()
    assert lines(conversation)[2:4] == [
        "CodeInterpreter>CodeInterpreter note partial [EXECUTION_RESULT: one\ntwo\n]: ",
        "User>CodeInterpreter intervention: Only two.",
    ]
    text = shown(model.requests[1])
    assert text.index("one two three") < text.index("execution_result:\none\ntwo") < text.index("Only two.")


async def test_what_is_recorded_of_a_run_has_left_the_draft(kernel: FakeKernel, autojump_clock: MockClock) -> None:
    model = coding(code("fail"), Reply(code("42"), pieces=20, delay=9), words("Stopped."))
    async with open_conversation(CodeInterpreter(model)) as conversation:
        started = conversation.communicate("q")
        await trio.sleep(100)
        conversation.intervene("Stop.")
        await started.reply()
    (partial,) = [line for line in lines(conversation) if " partial " in line]
    assert partial.startswith("CodeInterpreter>CodeInterpreter note partial [THOUGHT: run it")
    assert "EXECUTION_RESULT" not in partial


async def test_the_whole_route(kernel: FakeKernel) -> None:
    scripts = {"Planner": [to("CodeInterpreter", "6 * 7"), to("User", "It is 42.")], "CodeInterpreter": [code("42")]}
    with ScriptedModel(scripts) as model:
        planner = Planner(model, subordinates=[CodeInterpreter(model)])
        async with open_conversation(planner) as conversation:
            assert (await conversation.send("What is 6 * 7?")).message == "It is 42."
    ways = [line.split(" ")[0] for line in lines(conversation)]
    inner = ["CodeInterpreter>CodeInterpreter"] * 2
    assert ways == ["User>Planner", "Planner>CodeInterpreter", *inner, "CodeInterpreter>Planner", "Planner>User"]
    assert "printed:\n42" in model.requests[2].messages[-1].content


async def test_a_planner_learns_what_recalled_code_had_printed(kernel: FakeKernel, autojump_clock: MockClock) -> None:
    scripts = {"Planner": [to("CodeInterpreter", "do"), to("User", "Enough.")], "CodeInterpreter": [code("one two")]}
    with ScriptedModel(scripts) as model:
        async with open_conversation(Planner(model, subordinates=[CodeInterpreter(model)])) as conversation:
            started = conversation.communicate("q")
            await trio.sleep(0.5)
            conversation.intervene("Stop.", broadcast_level=2)
            assert (await started.reply()).message == "Enough."
    assert "execution_result:\none" in shown(model.requests[2])


def planner_step(request: ChatRequest) -> str:
    """Answers what the code found, unless the user has said something since."""
    last = request.messages[-1].content
    is_found = "From: CodeInterpreter" in last and "user_intervention" not in last and "interrupted" not in last
    return to("User", "It is 42.") if is_found else to("CodeInterpreter", "6 * 7")


@pytest.mark.parametrize(
    "inject",
    [
        pytest.param(interrupt(1), id="1", marks=pytest.mark.slow),
        pytest.param(interrupt(2), id="2", marks=pytest.mark.slow),
        pytest.param(interrupt(2, times=2), id="two"),
    ],
)
def test_planner_and_code_interpreter_survive_every_interruption(
    inject: Inject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake(monkeypatch, tmp_path, RingingKernel())

    def planner() -> Planner:
        model = ScriptedModel({"Planner": [planner_step] * 20, "CodeInterpreter": [lambda request: code("4 42")] * 20})
        return Planner(model, subordinates=[CodeInterpreter(model)])

    assert every_interrupt_point(scenario(planner), inject, seeds=range(1)).outcomes["seen"] > 20


COUNTING = """\
import time
for number in range(8):
    print(number, flush=True)
    time.sleep(0.02)
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(16))
async def test_real_code_survives_an_interruption_at_any_time(moment: int, tmp_path: Path) -> None:
    model = ScriptedModel({"CodeInterpreter": [lambda request: code(COUNTING)] * 4})
    before = Holdings.now()
    async with open_conversation(CodeInterpreter(model, folder=tmp_path, isolation="none")) as conversation:
        started = conversation.communicate("q")
        await trio.sleep(moment * 0.02)
        receipt = conversation.intervene("again")
        kept = (await receipt.stopped()).posts
        reply = await started.reply()
        await conversation.wait_idle()
    assert reply.message.endswith("0\n1\n2\n3\n4\n5\n6\n7")
    if receipt.interrupted:
        assert await receipt.seen()
        printed = "".join(str(one.content) for post in kept for one in post.get_attachment("execution_result"))
        numbers = re.split("Traceback|\\[interrupted", printed)[0]
        assert "01234567".startswith(numbers.replace("\n", ""))
    assert not before.left_behind()


PLOT = """\
import os
open("table.csv", "w").write("a")
os.mkdir("plots")
open("plots/one.svg", "w").write("<svg/>")
print(open("in_put.csv").read())
"""


async def test_real_code_makes_files_and_finds_those_it_was_given(tmp_path: Path) -> None:
    given = tmp_path / "given.csv"
    given.write_text("1,2")
    with coding(code(PLOT)) as model:
        interpreter = CodeInterpreter(model, folder=tmp_path, files={"../in put.csv": given}, isolation="none")
        async with open_conversation(interpreter) as conversation:
            reply = await conversation.send("q")
    assert reply.message == "The code has run and printed:\n1,2"
    assert reply.get_attachment("artifact_paths")[0].content == ("plots/one.svg", "table.csv")
    assert model.requests[0].messages[0].content.endswith("In the working folder are, from the start: in_put.csv")


async def test_real_code_that_fails_is_shown_with_its_traceback() -> None:
    with coding(code("1 / 0"), words("It cannot be divided.")) as model:
        async with open_conversation(CodeInterpreter(model, isolation="none")) as conversation:
            await conversation.send("q")
    assert "ZeroDivisionError" in model.requests[1].messages[-1].content


async def test_real_code_is_stopped_by_an_interruption(tmp_path: Path) -> None:
    endless = "print('begun', flush=True)\nimport time\nwhile True: time.sleep(0.01)"
    with coding(code(endless), words("Stopped.")) as model:
        async with open_conversation(CodeInterpreter(model, folder=tmp_path, isolation="none")) as conversation:
            events = conversation.events()
            started = conversation.communicate("q")
            async for event in events:
                if isinstance(event, DraftGrew) and event.type == "execution_result":
                    break
            conversation.intervene("Stop.")
            assert (await started.reply()).message == "Stopped."
    assert "note partial [EXECUTION_RESULT: begun" in lines(conversation)[2]


async def test_more_output_than_is_kept_loses_its_middle() -> None:
    long = "print('first'); print('x' * 50_000); print('last')"
    async with open_conversation(CodeInterpreter(coding(code(long)), isolation="none")) as conversation:
        message = (await conversation.send("q")).message
    assert len(message) < 9000 and "bytes left out]" in message
    assert "first" in message and message.endswith("last")


@pytest.mark.parametrize("names", [["a b", "a_b"], [".."], ["/"]])
def test_files_need_names_that_can_be_told_apart(names: list[str]) -> None:
    with pytest.raises(ValueError, match="name"):
        CodeInterpreter(coding(), files=dict.fromkeys(names, Path("x")))


def test_it_needs_one_attempt_at_least() -> None:
    with pytest.raises(ValueError, match="most_attempts"):
        CodeInterpreter(coding(), most_attempts=0)


async def test_long_output_is_shown_whole_in_its_round_and_by_its_first_lines_later(
    kernel: FakeKernel, autojump_clock: MockClock
) -> None:
    model = coding(code("123 456 789"), words("Done."))
    async with open_conversation(CodeInterpreter(model, lasting_output=6)) as conversation:
        reply = await conversation.send("q")
        await conversation.send("again")
    first_lines = "123\n[7 characters more, in this round alone]\n"
    assert reply.message == f"The code has run and printed:\n{first_lines}456\n789"
    assert reply.without_temporal().message == f"The code has run and printed:\n{first_lines}"
    later = "".join(message.content for message in model.requests[1].messages[1:])
    assert f"execution_result:\n{first_lines}" in later
    assert "456\n789" not in later


@pytest.mark.parametrize(
    ("lasting", "later"),
    [
        (11, "one two end"),
        (10, "one two en\n[1 characters more, in this round alone]\n"),
        (0, "[11 characters more, in this round alone]\n"),
    ],
)
def test_what_is_kept_of_a_long_line_ends_with_a_line(lasting: int, later: str) -> None:
    shown = code_interpreter._shown("one two end", lasting)
    assert cut(shown.string, shown.spans) == later


async def test_output_of_code_that_is_cut_off_lasts_no_longer(kernel: FakeKernel, autojump_clock: MockClock) -> None:
    async with open_conversation(CodeInterpreter(coding(code("123 456 789"), words("x")), lasting_output=6)) as talk:
        talk.communicate("q")
        await trio.sleep(1.5)
        talk.intervene("stop that")
        await talk.wait_idle()
    (partial,) = [post for post in posts(talk) if post.marks.state == "partial"]
    (printed,) = partial.attachment_list
    assert (printed.content, printed.temporal) == ("123\n456\n", (Span(6, 8),))


def test_a_size_below_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="lasting_output is a number of characters from 0 on"):
        CodeInterpreter(coding(), lasting_output=-1)


async def test_variables_outlive_a_turn_and_an_interruption(tmp_path: Path) -> None:
    endless = "seen = ['kept']\nprint('begun')\nwhile True: pass"
    with coding(code(endless), code("seen.append(2)"), code("seen")) as model:
        async with open_conversation(CodeInterpreter(model, folder=tmp_path, isolation="none")) as conversation:
            events = conversation.events()
            started = conversation.communicate("q")
            async for event in events:
                if isinstance(event, DraftGrew) and event.type == "execution_result":
                    break
            conversation.intervene("Stop.")
            await started.reply()
            assert (await conversation.send("What is in it?")).message.endswith("printed:\n['kept', 2]")
    assert "[interrupted; the variables are kept]" in shown(model.requests[1])


async def test_without_a_sandbox_nothing_is_run_unless_the_operator_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.actors.sandbox.shutil.which", lambda name: None)
    async with open_conversation(CodeInterpreter(coding(code("1")))) as conversation:
        with pytest.raises(RoleFailed) as failed:
            await conversation.send("q")
    assert isinstance(failed.value.__cause__, SandboxMissing)
    assert "isolation='none'" in str(failed.value.__cause__)


async def test_code_that_the_lint_refuses_is_put_back_and_not_run(kernel: FakeKernel) -> None:
    with coding(code("import os"), code("import numpy")) as model:
        async with open_conversation(CodeInterpreter(model, verification=DEFAULT_RULES)) as conversation:
            reply = await conversation.send("q")
    assert kernel.codes == ["import numpy"]
    assert "code_error: Line 1: os must not be imported." in model.requests[1].messages[-1].content
    assert reply.get_attachment("verification")[0].content == "CORRECT"
    assert "- Import nothing but: datetime, matplotlib" in model.requests[0].messages[0].content


async def test_the_model_is_shown_the_functions_of_plugins(kernel: FakeKernel, tmp_path: Path) -> None:
    file = tmp_path / "prices.py"
    file.write_text('def price(item: str, count: int = 1) -> float:\n    """What so many cost.\n\n    More."""\n')
    with coding(words("x")) as model:
        async with open_conversation(CodeInterpreter(model, plugins=(Plugin(file),))) as conversation:
            await conversation.send("q")
    told = "def price(item: str, count: int=1) -> float:\n    What so many cost.\n```"
    assert told in model.requests[0].messages[0].content


async def test_session_variables_are_read_before_each_run(kernel: FakeKernel) -> None:
    limits = iter([1, 1, 2, 2])
    with coding(code("a"), code("b")) as model:
        interpreter = CodeInterpreter(model, session=lambda conversation: {"limit": (conversation, next(limits))})
        async with open_conversation(interpreter) as conversation:
            await conversation.send("q")
            await conversation.send("q")
    id = conversation.transcript().id
    assert kernel.variables == [{"limit": (id, 1)}, {"limit": (id, 2)}]
    assert "variables` gives a dict with: limit" in model.requests[0].messages[0].content


def test_functions_of_plugins_need_names_of_their_own(tmp_path: Path) -> None:
    files = [tmp_path / "a.py", tmp_path / "b.py"]
    for file in files:
        file.write_text("def f() -> None: ...")
    with pytest.raises(ValueError, match="functions of the same name: f, f"):
        CodeInterpreter(coding(), plugins=tuple(map(Plugin, files)))
