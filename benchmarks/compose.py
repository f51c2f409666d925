"""What composing costs beside what any client does next: writing the same messages as the JSON of a request.

`python -m benchmarks.compose` prints CPU milliseconds and the ratio of the two, measured in turn in one process, for
conversations of so many rounds: a question, a plan that asks a worker, its report, the answer; an interruption in each
tenth round. Of the last conversation, summed up, all but the last ten rounds are covered by a summary.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence

from callboard.prompts.composer import compose
from callboard.prompts.material import Material, Summary
from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.chat_model import Message
from callboard.runtime.post import USER, Marks, Post
from callboard.runtime.round import Round

WORDS = "Compare the two suppliers by what they cost us in 2025, and say which one is late more often. " * 3
PLAN = (
    (AttachmentType.plan_reasoning, "The data come first, then the comparison."),
    (AttachmentType.init_plan, "1. read the orders 2. sum up by supplier <depends on 1> 3. compare <depends on 2>"),
    (AttachmentType.plan, "1. read the orders and sum up by supplier 2. compare"),
    (AttachmentType.current_plan_step, "1. read the orders and sum up by supplier"),
    (AttachmentType.stop, "InProcess"),
)


def conversation(count: int) -> tuple[Round, ...]:
    """So many rounds, as the Planner's memory holds them."""
    return tuple(_round(number) for number in range(count))


def _round(number: int) -> Round:
    question = Post.create(WORDS, USER, "Planner", marks=Marks(words=f"words-{number}"))
    plan = [Attachment.create(type, text) for type, text in PLAN]
    posts = [question, Post.create(WORDS, "Planner", "Worker", plan)]
    if number % 10 == 9:
        posts.append(Post.create("So far", "Worker", "Planner", marks=Marks(posts[1].id, "reply", "partial")))
        posts.append(
            Post.create("Only 2025.", USER, "Planner", marks=Marks(kind="intervention", words=f"more-{number}"))
        )
        posts.append(Post.create(WORDS, "Planner", "Worker", plan))
    posts += [posts[-1].reply(WORDS), question.reply(WORDS, plan)]
    return Round(f"round-{number}", WORDS, "finished", tuple(posts))


def written(messages: Sequence[Message]) -> bytes:
    """The body of a request."""
    shown = [{"role": message.role, "content": message.content} for message in messages]
    return json.dumps({"messages": shown}, ensure_ascii=False).encode()


def measure(work: Callable[[], object], least: float = 0.02) -> float:
    """CPU seconds of one run of the work, from as many as take a while together."""
    runs = 0
    started = time.process_time()
    while (taken := time.process_time() - started) < least:
        work()
        runs += 1
    return taken / runs


def compare(name: str, material: Material, runs: int) -> None:
    """Prints a line: the medians, and the median of the ratios run by run."""
    messages = compose(material)
    pairs = [(measure(lambda: compose(material)), measure(lambda: written(messages))) for _ in range(runs)]
    ours, theirs = (statistics.median(column) * 1e3 for column in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    print(f"{name:16}{len(messages):>10}{ours:>10.3f} ms{theirs:>10.3f} ms{ratio:>8.1f}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", default="10,100,1000", help="how many rounds, separated by commas")
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args(arguments)
    print(f"{'rounds':16}{'messages':>10}{'composed':>13}{'written':>13}{'ratio':>8}")
    counts = [int(count) for count in options.rounds.split(",")]
    for count in counts:
        compare(str(count), Material("You are Planner.", "Planner", conversation(count)), options.runs)
    rounds = conversation(max(counts))
    summary = Summary(WORDS, rounds[max(0, len(rounds) - 11)].id)
    summed_up = Material("You are Planner.", "Planner", rounds, summaries=(summary,))
    compare(f"{len(rounds)}, summed up", summed_up, options.runs)


if __name__ == "__main__":
    main()
