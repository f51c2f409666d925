"""The demo: Planner and CodeInterpreter work on a question about a table, and the user changes it while code runs.

What is printed while they work comes from `narrator`, what is left to say from `report`. Whenever the words come, the
answer is computed with them: while code runs, before, or after the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

import trio

from callboard.actors.code_interpreter import CodeInterpreter
from callboard.actors.planner import Planner
from callboard.runtime import Actor, Post, Receipt, Transcript, open_conversation
from callboard.runtime.chat_model import ChatModel
from callboard.runtime.nursery import open_nursery
from callboard.runtime.receipt import Stopped

from .demo_script import QUESTION, WORDS
from .make_orders import PATH
from .narrator import Narrator, Write
from .plain_text import WIDTH, fit, fit_lines, plain
from .post_tree import said_in, tree_of

WORDS_AFTER = 4
"""How many lines the running code has printed when the user speaks."""
TIME_LIMIT = 600.0
"""Seconds after which the demo gives up on a model."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the conversation left."""

    answer: Post
    receipt: Receipt
    stopped: Stopped
    seen: bool
    transcript: Transcript


def demo_roles(model: ChatModel) -> Actor:
    """The planner, with an interpreter under it that finds orders.csv in its working folder."""
    # It must run everywhere, so it asks for no sandbox; the program's help says so.
    return Planner(model, subordinates=(CodeInterpreter(model, files={PATH.name: PATH}, isolation="none"),))


async def run_demo(root: Actor, write: Write, *, words_after: int = WORDS_AFTER) -> Outcome:
    """Holds the conversation and writes what happens, line by line, while it happens.

    Raises what a round raises, RoleFailed above all, and trio.TooSlowError after ten minutes.
    """
    narrator = Narrator(write)
    due = trio.Event()
    with trio.fail_after(TIME_LIMIT):
        async with open_nursery() as nursery, open_conversation(root) as conversation:
            nursery.start_soon(narrator.follow, conversation.events(), words_after, due)
            started = conversation.communicate(QUESTION)
            await due.wait()
            if narrator.ended.is_set():
                await started.reply()
            receipt = conversation.communicate(WORDS, broadcast_level=2)
            answer = await receipt.reply()
            stopped, seen = await receipt.stopped(), await receipt.seen()
            return Outcome(answer, receipt, stopped, seen, conversation.transcript())


def report(outcome: Outcome) -> Iterator[str]:
    """What is left to say after the conversation: the receipt, the work that was cut, the answer, all posts."""
    receipt = outcome.receipt
    yield "\nThe receipt of the user's words"
    yield f"  action       {receipt.action}"
    for name in ("reached", "interrupted", "recalled", "told", "spared"):
        yield f"  {name:12} {', '.join(getattr(receipt, name)) or '-'}"
    yield f"  seen         {'yes' if outcome.seen else 'no'}"
    yield "\nWhat was kept of the work that was cut"
    if not outcome.stopped.posts:
        yield "  nothing: no work was under way"
    for post in outcome.stopped.posts:
        yield f"  {post.send_from}, {post.marks.state}:"
        yield from (f"    {line}" for line in fit_lines(said_in(post), WIDTH - 4))
    yield "\nThe answer"
    yield from (f"  {line}" for line in wrap(plain(outcome.answer.message), WIDTH - 2))
    yield "\nThe posts, each below the request it belongs to"
    for round_ in outcome.transcript.rounds:
        yield f"  {fit(round_.user_query, WIDTH - 2)}"
        yield from (f"    {line}" for line in tree_of(round_, WIDTH - 4))
