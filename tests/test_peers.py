"""The comparison with peers: the scripted server over real HTTP, what is read off a trial's logs, and the page."""

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

import benchmarks.peers
from benchmarks.__main__ import names
from benchmarks.peers import table
from benchmarks.peers.environment import NotInstalled, cache_folder, interpreter
from benchmarks.peers.outcome import Logs, NotDriven, outcome, read_tool_log, run_trial
from benchmarks.peers.roster import PEERS, Peer
from benchmarks.peers.scripted_server import ANSWER, CALL_ID, TEXT_CALL, TOOL, Request, ScriptedServer
from benchmarks.peers.trial import QUESTION, RESULT, WORDS, Trial, piece
from callboard.runtime.chat_model import ChatRequest, EndDelta, Message, TextDelta
from callboard.runtime.models import HttpChatModel

pytestmark = pytest.mark.slow  # tests of what measures, on clocks and servers that are real

PLACEHOLDER = "The tool was interrupted."
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": CALL_ID}]}
DRIVERS = Path(benchmarks.peers.__file__).parent


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def told(text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": CALL_ID, "content": text}


def offered(*tools: str) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": name}} for name in tools]


def post(server: ScriptedServer, path: str = "/chat/completions", **body: Any) -> dict[str, Any]:
    """The message that a request gets."""
    sent = urllib.request.Request(server.base_url + path, json.dumps({"messages": [], **body}).encode())
    with urllib.request.urlopen(sent, timeout=10) as response:
        message: dict[str, Any] = json.load(response)["choices"][0]["message"]
        return message


def test_the_first_reply_calls_the_tool_and_every_later_one_is_the_answer(server: ScriptedServer) -> None:
    replies = [post(server, tools=offered("other", TOOL)) for _ in range(3)]
    assert [call["function"]["name"] for call in replies[0]["tool_calls"]] == [TOOL]
    assert [reply["content"] for reply in replies[1:]] == [ANSWER, ANSWER]


def test_an_agent_that_answers_through_a_tool_is_answered_through_it(server: ScriptedServer) -> None:
    tools = offered(TOOL, "final_answer")
    calls = [post(server, tools=tools)["tool_calls"][0]["function"] for _ in range(2)]
    assert [call["name"] for call in calls] == [TOOL, "final_answer"]
    assert json.loads(calls[1]["arguments"]) == {"answer": ANSWER}


async def test_without_tools_the_call_is_a_text_that_the_packaged_model_can_stream(server: ScriptedServer) -> None:
    request = ChatRequest("Clerk", (Message("user", QUESTION),))
    texts = []
    async with HttpChatModel(server.base_url, name="scripted") as model:
        for _ in range(2):
            async with model.stream(request) as deltas:
                seen = [delta async for delta in deltas]
            texts.append("".join(delta.text for delta in seen if isinstance(delta, TextDelta)))
            assert seen[-1] == EndDelta("stop")
    assert texts == [TEXT_CALL, ANSWER]


def test_a_streamed_call_is_one_delta_with_an_index_and_ends_with_tool_calls(server: ScriptedServer) -> None:
    body = json.dumps({"messages": [], "tools": offered(TOOL), "stream": True}).encode()
    with urllib.request.urlopen(server.base_url + "/chat/completions", body, timeout=10) as response:
        *events, done = response.read().decode().split("\n\n")[:-1]
    first, last, used = (json.loads(event.removeprefix("data: ")) for event in events)
    assert first["choices"][0]["delta"]["tool_calls"][0]["index"] == 0
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert (used["choices"], done) == ([], "data: [DONE]")


def test_each_request_is_logged_with_its_time_and_what_it_says(server: ScriptedServer) -> None:
    post(server, messages=[user(QUESTION)])
    post(server, messages=[user(QUESTION), CALL, told(PLACEHOLDER), {"role": "user", "content": [{"text": WORDS}]}])
    first, second = server.requests
    assert first.at < second.at
    assert [first.says(WORDS), second.says(WORDS)] == [False, True]
    assert [first.calls, second.calls] == [[], [CALL_ID]]
    assert second.told_of_tools == [PLACEHOLDER]


def test_what_is_no_chat_is_refused_and_not_logged(server: ScriptedServer) -> None:
    with pytest.raises(urllib.error.HTTPError) as raised:
        post(server, "/responses")
    raised.value.close()
    assert raised.value.code == 404
    assert server.requests == []


def logs(*requests: Request, line: dict[str, Any], tool: str) -> Logs:
    """Of a trial in which the user spoke at 100 and the first run was over at 100.5."""
    left: dict[str, list[str]] = {"tasks": [], "threads": [], "processes": []}
    history = {"question": True, "words": False, "progress": False}
    whole = {"version": "1.0", "said": 100.0, "over": 100.5, "how": "Cancelled", "runs": 2, "answer": ANSWER}
    return Logs({**whole, "history": history, "left": left, **line}, requests, read_tool_log(tool))


def asked(at: float, *messages: dict[str, Any]) -> Request:
    return Request(at, {"messages": [user(QUESTION), *messages]})


STOPPED = f"98.8 start\n99.3 {piece(1)}\n99.8 {piece(2)}\n100.01 stopped by Cancelled\n"
WHOLE = f"98.8 start\n99.8 {piece(2)}\n101.8 end\n"
AT_98 = asked(98.0)

TRIALS = {
    "seen in the same run, with the progress": (
        logs(
            AT_98,
            asked(100.02, user(TEXT_CALL), user(piece(2)), user(WORDS)),
            line={"runs": 1, "how": "answered"},
            tool=STOPPED,
        ),
        ["after 20 ms", "was stopped after 10 ms", "the question; the call and its progress up to then"],
        ["nothing of the run", "yes, one answer"],
    ),
    "cancelled and run again, with a placeholder": (
        logs(AT_98, asked(100.6, CALL, told(PLACEHOLDER), user(WORDS)), line={}, tool=STOPPED),
        [
            "after 600 ms",
            "was stopped after 10 ms",
            f"the question; the call, answered with `{PLACEHOLDER}`; not its progress",
        ],
        ["nothing of the run", "no: it ended after 500 ms (Cancelled), a second run answered"],
    ),
    "the call is left open, and the tool runs on": (
        logs(
            AT_98,
            asked(100.6, CALL, user(WORDS)),
            line={"left": {"tasks": ["a (Task-2)", "b (Task-3)"], "threads": ["c"], "processes": []}},
            tool=WHOLE,
        ),
        [
            "after 600 ms",
            "ran to its end, 1.80 s later, after its run was over",
            "the question; the call, without an answer; not its progress",
        ],
        ["2 tasks and 1 thread", "no: it ended after 500 ms (Cancelled), a second run answered"],
    ),
    "the run ends first, and then the words are said": (
        logs(
            AT_98,
            asked(101.9, CALL, told(RESULT)),
            asked(102.0, CALL, told(RESULT), user(WORDS)),
            line={"over": 101.95},
            tool=WHOLE,
        ),
        [
            "after 2.00 s, after 1 more model call",
            "ran to its end, 1.80 s later",
            "the question; the call and its result",
        ],
        ["nothing of the run", "no: it ended after 1.95 s (Cancelled), a second run answered"],
    ),
    "nothing of the step is kept": (
        logs(AT_98, Request(100.6, {"messages": [user(WORDS)]}), line={}, tool=STOPPED),
        ["after 600 ms", "was stopped after 10 ms", "not the question; not the call; not its progress"],
        ["nothing of the run", "no: it ended after 500 ms (Cancelled), a second run answered"],
    ),
    "the progress is kept where no request shows it": (
        logs(
            AT_98,
            asked(100.6, CALL, user(WORDS)),
            line={"history": {"question": True, "words": False, "progress": True}},
            tool=STOPPED,
        ),
        [
            "after 600 ms",
            "was stopped after 10 ms",
            "the question; the call, without an answer; its progress is in the history alone",
        ],
        ["nothing of the run", "no: it ended after 500 ms (Cancelled), a second run answered"],
    ),
    "the run never returns": (
        logs(AT_98, line={"answer": "", "runs": 1, "how": "no return within 10 s"}, tool=STOPPED),
        ["never", "was stopped after 10 ms", "there is none"],
        ["nothing of the run", "no: no return within 10 s"],
    ),
}


@pytest.mark.parametrize(("trial", "work", "run"), TRIALS.values(), ids=TRIALS)
def test_a_row_says_what_the_logs_of_its_trial_say(trial: Logs, work: list[str], run: list[str]) -> None:
    recorded = json.loads(json.dumps(outcome(trial)))
    text = table.render({"trials": [{"peer": "smolagents", "mechanism": "interrupt", "outcome": recorded}]})
    row = text.splitlines()[-1].strip("| ").split(" | ")
    assert row[0] == "smolagents 1.0"
    assert row[2:] == work + run


def test_what_serves_the_library_as_a_whole_is_told_apart_from_what_a_run_left() -> None:
    left: dict[str, list[str]] = {"tasks": ["callboard:memory", "tool (Task-9)"], "threads": [], "processes": ["7"]}
    recorded = outcome(logs(AT_98, asked(100.1, user(WORDS)), line={"left": left}, tool=STOPPED))
    text = table.render({"trials": [{"peer": "callboard", "mechanism": "intervene", "outcome": recorded}]})
    assert "| 1 task and 1 process (stays: `callboard:memory`) |" in text


def test_a_peer_that_could_not_be_tried_stands_below_the_table_with_the_reason() -> None:
    results = {**table.read_results()}
    failed = {"peer": "crewai", "mechanism": "close", "date": "2026-01-01", "reason": "pip took too long"}
    results["trials"] = [trial for trial in results["trials"] if trial["peer"] != "crewai"] + [failed]
    assert "CrewAI" not in table.render(results)
    assert table.page(results).endswith(f"CrewAI, {CREW.mechanisms['close']}: pip took too long\n")


CREW = next(peer for peer in PEERS if peer.key == "crewai")


def test_the_page_is_what_the_recorded_results_give() -> None:
    assert table.PAGE.read_text(encoding="utf-8") == table.page(table.read_results())


def test_every_mechanism_of_the_roster_is_recorded_in_its_order() -> None:
    recorded = [(trial["peer"], trial["mechanism"]) for trial in table.read_results()["trials"]]
    assert recorded == [(peer.key, mechanism) for peer in PEERS for mechanism in peer.mechanisms]


def test_among_the_other_benchmarks_the_recorded_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "peers" in names()
    benchmarks.peers.main([])
    assert capsys.readouterr().out.strip() == table.render(table.read_results()).strip()


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.key)
def test_every_peer_has_a_driver_and_a_version(peer: Peer) -> None:
    assert (DRIVERS / f"{peer.key}.py").exists()
    assert all("==" in requirement for requirement in peer.requirements)


def test_a_trial_counts_what_is_left_of_a_run_and_not_what_came_before_or_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    go_on = threading.Event()
    threads = [threading.Thread(target=go_on.wait, name=name) for name in ("before", "during", "after")]
    monkeypatch.setattr(sys, "argv", ["driver", "http://server", "way", str(tmp_path / "tool.log")])
    threads[0].start()
    trial = Trial.from_arguments()
    threads[1].start()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        trial.over("ended", [QUESTION, piece(2)], {"goes on": lambda: True, "has ended": lambda: False})
        threads[2].start()
        trial.report("trio", ANSWER)
        child.communicate(b"\n")
    go_on.set()
    line = json.loads(capsys.readouterr().out)
    assert line["left"]["tasks"] == ["goes on"]
    assert line["left"]["threads"] == ["during"]
    if sys.platform == "linux":
        assert line["left"]["processes"] == [str(child.pid)]
    assert line["history"] == {"question": True, "words": False, "progress": True}


async def test_the_tool_logs_its_pages_and_what_stopped_it(tmp_path: Path, autojump_clock: MockClock) -> None:
    trial = Trial("http://server", "way", tmp_path / "tool.log")
    reported: list[str] = []
    with trio.move_on_after(1.2) as scope:
        await trial.slow_lookup(reported.append, trio.sleep)
    assert scope.cancelled_caught
    assert await trial.slow_lookup(reported.append, trio.sleep) == RESULT
    events = [what for _, what in read_tool_log(trial.tool_log.read_text(encoding="utf-8"))]
    assert events[:4] == ["start", piece(1), piece(2), "stopped by Cancelled"]
    assert events[4:] == ["start", *map(piece, range(1, 7)), "end"]
    assert reported == [*map(piece, (1, 2)), *map(piece, range(1, 7))]


def test_a_driver_that_fails_is_not_driven_and_says_why() -> None:
    with pytest.raises(NotDriven, match=r"No module named benchmarks\.peers\.nobody"):
        run_trial(Path(sys.executable), "nobody", "way")


def test_callboard_runs_where_this_runs_and_a_peer_in_an_environment_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = cache_folder() / CREW.key
    folder.mkdir(parents=True)
    (folder / ".installed").write_text("\n".join(CREW.requirements))
    assert interpreter(PEERS[0]) == Path(sys.executable)
    assert interpreter(CREW).is_relative_to(folder)


def test_what_pip_cannot_install_is_not_installed_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NotInstalled, match="no_such_folder"):
        interpreter(Peer("peer", "Peer", {}, ("./no_such_folder/",)))


def test_the_row_of_callboard_is_true_here() -> None:
    mine = outcome(run_trial(Path(sys.executable), "callboard", "intervene"))
    assert mine["seen"] < 1
    assert not mine["tool"]["whole"]
    assert mine["request"] == {
        "question": True,
        "call": True,
        "answer_to_call": None,
        "progress": True,
        "result": False,
    }
    assert (mine["run"]["runs"], mine["answered"]) == (1, True)
