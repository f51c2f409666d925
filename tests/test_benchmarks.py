"""The benchmarks run and measure what they say; nothing here asks how fast anything was."""

import json
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from benchmarks import answering, compose, experience, idle, interrupt, memory, replies
from benchmarks.__main__ import main, names
from benchmarks._plain_memory import PlainMemory, PlainPost
from benchmarks._tree import Moment, StreamingModel, Tree, chain, fan, work
from callboard.runtime.memory import Memory
from callboard.runtime.subscription import Publisher

pytestmark = pytest.mark.slow  # tests of what measures, on clocks and servers that are real

NEVER = Moment(0.0, 0.0)
Lines = pytest.CaptureFixture[str]


def objects(output: Lines) -> list[dict[str, object]]:
    """What was printed, as the JSON objects of its lines."""
    return [json.loads(line) for line in output.readouterr().out.splitlines()]


def test_only_modules_without_an_underscore_are_benchmarks() -> None:
    assert {"hop", "idle", "interrupt"} <= set(names())
    assert "_tree" not in names()


def test_an_unknown_benchmark_is_refused() -> None:
    with pytest.raises(SystemExit, match="no such benchmark: skip"):
        main(["hop", "skip"])


def test_a_chain_has_one_leaf_and_a_fan_as_many_as_one_says() -> None:
    assert list(chain(3).leaves()) == ["Role3"]
    assert list(fan(2).leaves()) == ["Leaf0", "Leaf1"]


@pytest.mark.parametrize("measure", [interrupt.full, interrupt.bare])
@pytest.mark.parametrize("tree", [chain(1), chain(3), fan(1), fan(3)], ids=["alone", "chain", "one leaf", "three"])
def test_an_interruption_ends_after_its_call_has_returned(
    measure: Callable[[Tree], Awaitable[interrupt.Latency]], tree: Tree
) -> None:
    latency = trio.run(measure, tree)
    assert NEVER < latency.call < latency.stopped
    assert latency.call < latency.next_call
    assert 0 < latency.call.cpu < min(latency.stopped.cpu, latency.next_call.cpu)


async def test_the_model_is_at_work_when_all_leaves_read_and_notes_the_next_call_alone() -> None:
    tree = fan(2)
    model = StreamingModel(tree)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, tree.below[0], model, "Work.")
        await trio.testing.wait_all_tasks_blocked()
        assert not model.at_work.is_set()
        nursery.start_soon(work, tree.below[1], model, "Work.")
        await model.at_work.wait()
        assert (model.told, model.called_at) == ("", NEVER)
        await work(tree.below[0], model, "first")
        called_at = model.called_at
        await work(tree.below[0], model, "second")
        nursery.cancel_scope.cancel()
    assert model.told == "first"
    assert model.called_at == called_at > NEVER


def test_a_call_without_the_users_words_is_no_measure() -> None:
    with pytest.raises(RuntimeError, match="not the user's words"):
        interrupt._latency(StreamingModel(chain(1)), NEVER, NEVER, NEVER)


def test_times_are_medians_and_the_ratio_is_of_cpu_time_run_by_run() -> None:
    pairs = [(Moment(9.0, ours), Moment(2.0, theirs)) for ours, theirs in ((4.0, 4.0), (6.0, 2.0), (8.0, 4.0))]
    compared = interrupt.Comparison.of("tree", "measure", [(Moment(50.0, 1.0), Moment(1.0, 2.0)), *pairs])
    assert (compared.full_ms, compared.full_worst_ms, compared.bare_ms) == (9e3, 50e3, 2e3)
    assert (compared.full_cpu_ms, compared.bare_cpu_ms) == (5e3, 3e3)
    assert compared.ratios == (0.5, 1.0, 2.0, 3.0)
    assert compared.ratio == 1.5


def test_interruptions_are_compared_in_a_table(capsys: Lines) -> None:
    interrupt.main(["--depths", "2", "--leaves", "2", "--runs", "1"])
    head, *rows, aims = capsys.readouterr().out.splitlines()
    assert "the model is called again" in head
    assert [row.split("  ")[0] for row in rows] == ["depth 2", "leaves 2"]
    assert aims.startswith("aims: ")


def test_interruptions_are_compared_as_json(capsys: Lines) -> None:
    interrupt.main(["--depths", "1", "--leaves", "", "--runs", "1", "--json"])
    figures = objects(capsys)
    assert [(one["tree"], one["measure"]) for one in figures] == [
        ("depth 1", measure) for measure in ("call", "stopped", "next_call")
    ]


@pytest.mark.parametrize(("case", "tasks"), [("bare trio", 6), ("callboard, waiting", 6), ("callboard, let go", 1)])
def test_an_idle_conversation_has_the_tasks_that_its_case_says(case: str, tasks: int) -> None:
    growth = idle.measure(case, 3)
    assert growth.tasks == tasks
    assert growth.objects > 0


def test_idle_conversations_are_measured_in_processes_of_their_own(capsys: Lines) -> None:
    idle.main(["--conversations", "3", "--json"])
    figures = objects(capsys)
    assert [one["case"] for one in figures] == list(idle.CASES)
    assert [one["tasks"] for one in figures] == [6, 6, 1]


def test_composing_is_compared_with_writing_the_same_messages(capsys: Lines) -> None:
    compose.main(["--rounds", "2,12", "--runs", "1"])
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["rounds", "messages", "composed", "written", "ratio"]
    assert [row.split("  ")[0] for row in rows] == ["2", "12", "12, summed up"]
    assert [int(row[16:26]) for row in rows] == [9, 52, 45]


def test_replies_are_read_in_each_way_and_compared_with_the_shortest(capsys: Lines) -> None:
    replies.main(["--sizes", "400,800", "--runs", "1"])
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[-3:] == ["gathered", "read", "drafted"] or "jsonriver" in head
    assert [row.split(" characters")[0].strip() for row in rows] == ["400", "800"]
    assert rows[0].count("1.00 of the first") >= 3


def test_the_plain_memory_answers_as_ours_does() -> None:
    ours, plain = Memory("conv-1", Publisher()), PlainMemory()
    memory.fill(ours, plain, 3)
    for role in ("User", "Planner", "Worker"):
        read = [[PlainPost.of(post) for post in one.post_list] for one in ours.role_rounds(role)]
        assert [one.post_list for one in plain.role_rounds(role)] == read
    assert plain.shared_entries("plan") == list(ours.shared_entries("plan"))


def test_what_answers_cost_is_printed_for_each_length(capsys: Lines) -> None:
    memory.main(["--rounds", "2,4", "--calls", "3", "--runs", "1"])
    _, _, *rows, rounds, entries = capsys.readouterr().out.splitlines()
    assert [(row.split()[0], len(row.split())) for row in rows] == [("2", 8), ("4", 8)]
    assert (rounds[:7], entries[:8]) == ("rounds:", "entries:")


def test_memory_is_asked_in_every_situation(capsys: Lines) -> None:
    answering.main(["--conversations", "3", "--seconds", "0.5", "--pause", "0.01"])
    _, *rows = capsys.readouterr().out.splitlines()
    names = ["alone", "while a role works", "3 conversations", "3, and a journal lags", "3, without a pause"]
    assert [row[:36].rstrip() for row in rows] == names
    assert all(float(row[36:].split()[0].replace(",", "")) > 0 for row in rows)


def test_lessons_are_made_ready_in_each_way_and_searched_and_held(capsys: Lines) -> None:
    experience.main(["--lessons", "40", "--held", "30", "--pure", "3", "--runs", "2"])
    head, *rows = capsys.readouterr().out.splitlines()
    assert head == "40 lessons of 384 numbers are ready"
    names = ["with the cache", "without", "pure PyYAML", "a query", "30, without", "30, with the cache"]
    assert [row.split("  ")[0] for row in rows] == names
    assert "of 0 MB" in rows[-1]
