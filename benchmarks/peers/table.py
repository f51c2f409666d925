"""The table: `docs/peers.md` as it follows from `results.json` and the roster, word by word and without the network."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .roster import PEERS, Peer
from .trial import PIECE_SECONDS, PIECES, QUESTION, RESULT, SETTLE, SPEAK_AFTER, WORDS

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parent.parent.parent / "docs" / "peers.md"

HEADER = (
    "peer",
    "mechanism",
    "the model sees the words",
    "the running tool",
    "of the step, in that request",
    "left running",
    "the same run goes on",
)

Result = Mapping[str, Any]


def read_results() -> dict[str, Any]:
    """What the last run recorded: its date, its Python, and its trials."""
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def write_results(results: Mapping[str, Any]) -> None:
    """Keeps them for `read_results`, in a form whose differences can be read."""
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def page(results: Mapping[str, Any]) -> str:
    """The whole page."""
    return f"{_introduction(results)}\n{render(results)}\n{_explanation()}\n{_remarks(results)}{_not_tried(results)}"


def render(results: Mapping[str, Any]) -> str:
    """The table alone: a row for each peer and mechanism, in the order of the roster."""
    rows = [HEADER, ("---",) * len(HEADER)]
    for peer in PEERS:
        for trial in results["trials"]:
            if trial["peer"] == peer.key and trial["mechanism"] in peer.mechanisms and "outcome" in trial:
                cells = _cells(peer, trial["mechanism"], trial["outcome"])
                rows.append(tuple(cell.replace("|", "\\|") for cell in cells))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cells(peer: Peer, mechanism: str, outcome: Result) -> Iterator[str]:
    yield f"{peer.name} {outcome['version']}"
    yield peer.mechanisms[mechanism]
    yield _seen(outcome)
    yield _tool(outcome["tool"])
    yield _step(outcome)
    yield _left(peer, outcome)
    yield _run(outcome)


def _seen(outcome: Result) -> str:
    if outcome["seen"] is None:
        return "never"
    others = outcome["requests_without"]
    between = f", after {others} more model call{'s' * (others > 1)}" if others else ""
    return f"after {_time(outcome['seen'])}{between}"


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.001 else "less than 1 ms"


def _tool(tool: Result) -> str:
    if not tool["whole"]:
        return f"was stopped after {_time(tool['ended'])}"
    where = ", after its run was over" if tool["after_run"] else ""
    return f"ran to its end, {_time(tool['ended'])} later{where}"


def _step(outcome: Result) -> str:
    """What of the interrupted step the model is sent with the words, and where the tool's progress is."""
    request = outcome["request"]
    if request is None:
        return "there is none"
    question = "the question" if request["question"] else "not the question"
    return f"{question}; {_call(request)}{_progress(outcome)}"


def _call(request: Result) -> str:
    if request["result"]:
        return "the call and its result"
    if request["progress"]:
        return "the call and its progress up to then"
    if not request["call"]:
        return "not the call"
    answer = request["answer_to_call"]
    return f"the call, answered with `{answer}`" if answer else "the call, without an answer"


def _progress(outcome: Result) -> str:
    if outcome["request"]["result"] or outcome["request"]["progress"]:
        return ""
    return "; its progress is in the history alone" if outcome["history"]["progress"] else "; not its progress"


def _left(peer: Peer, outcome: Result) -> str:
    left = outcome["left"]
    names = [*left["tasks"], *left["threads"]]
    standing = [name for name in names if name.startswith(peer.standing)] if peer.standing else []
    working = {
        "task": [name for name in left["tasks"] if name not in standing],
        "thread": [name for name in left["threads"] if name not in standing],
        "process": left["processes"],
    }
    parts = [f"{len(found)} {_plural(kind, len(found))}" for kind, found in working.items() if found]
    stays = ", ".join(f"`{name.partition(' ')[0]}`" for name in standing)
    return (" and ".join(parts) or "nothing of the run") + (f" (stays: {stays})" if stays else "")


def _plural(kind: str, count: int) -> str:
    return kind if count == 1 else f"{kind}{'es' if kind.endswith('s') else 's'}"


def _run(outcome: Result) -> str:
    run = outcome["run"]
    if not outcome["answered"]:
        return f"no: {run['how']}"
    if run["runs"] == 1:
        return "yes, one answer"
    return f"no: it ended after {_time(run['over'])} ({run['how']}), a second run answered"


def _introduction(results: Mapping[str, Any]) -> str:
    dates = sorted({trial["date"] for trial in results["trials"]})
    seconds = PIECES * PIECE_SECONDS
    return f"""# A user speaks while a tool runs

What callboard and its peers do with it. This page is generated: `python -m benchmarks.peers` runs the trials and writes
it. They were run on {" and ".join(dates)} with Python {results["python"]}, on {results["machine"]}.

Each trial puts a question to an agent:

> {QUESTION}

Its model is a script behind HTTP on the same machine, which calls `slow_lookup` first and gives the final answer to
every later request, without delay. The tool takes {seconds:g} s: {PIECES} pages, each read in {PIECE_SECONDS:g} s.
It is async where the peer has async tools, and reports each page where a channel for that was found in the peer.
{SPEAK_AFTER:g} s after its start, with two pages read, the user says:

> {WORDS}

The words are handed over in a way that the peer offers for it; where several ways differ, each has a row. Where a peer
has no verb of its own that stops the work at once, or that verb does not end the run, the task that runs it is
cancelled, which is asyncio's way.
"""


def _explanation() -> str:
    return f"""- *The model sees the words*: from the user's words to the arrival of the first request that holds them.
- *The running tool*: by a log that the tool itself writes. Whole, its result is "{RESULT}".
- *Of the step*: read off that same request. "Without an answer" means that no message of role `tool` follows the call;
  [there are providers that refuse such a request](https://github.com/langchain-ai/langgraph/issues/6726), and the
  script does not.
- *Left running*: what was there when the first run said that it was over, and was still there {SETTLE:g} s later. In
  brackets: what serves the library as a whole. One small tool says little here: it starts nothing of its own and lets
  itself be cancelled.
- *The same run*: whether the call that began the work is the one that returns the answer to all that was said.

Early is not better by itself: a tool that was stopped has to be called again if its result is still wanted, and one
that must not be stopped half-way is better left to run. Each trial was run once, in a fresh process; milliseconds vary.
"""


def _remarks(results: Mapping[str, Any]) -> str:
    tried = Counter(trial["peer"] for trial in results["trials"] if "outcome" in trial)
    lines = [f"- {peer.name}: {peer.remark}\n" for peer in PEERS if peer.remark and tried[peer.key]]
    return "## How each was tried\n\n" + "".join(lines)


def _not_tried(results: Mapping[str, Any]) -> str:
    failed: Sequence[Result] = [trial for trial in results["trials"] if "outcome" not in trial]
    if not failed:
        return ""
    names = {peer.key: peer for peer in PEERS}
    lines = [
        f"- {names[trial['peer']].name}, {names[trial['peer']].mechanisms[trial['mechanism']]}: {trial['reason']}\n"
        for trial in failed
        if trial["peer"] in names
    ]
    return "\n## Not in the table\n\n" + "".join(lines)
