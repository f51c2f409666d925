"""Situations in which a host may call a verb: a conversation that was brought there, and what it does from then on.

The root asks a clerk, who works in four steps of a second; then the root works in one. An answer is the question with
all words that were read on the way: `q+x` where the clerk read x, `q+x@boss` where the boss did.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import CallboardError
from callboard.runtime.memory import get_role_rounds
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.receipt import Receipt
from callboard.runtime.round import RoundState


async def heard(context: TurnContext) -> list[str]:
    """The words that lie in the role's rounds, in this round."""
    rounds = await get_role_rounds(context, context.role)
    return [post.message for post in rounds[-1].post_list if post.marks.kind in ("intervention", "nudge")]


class Clerk(Actor):
    """Works in four steps; its clean-up takes a while."""

    name = "clerk"

    def __init__(self, clean_up: float = 0.0) -> None:
        self.clean_up = clean_up

    async def receive(self, post: Post, context: TurnContext) -> Post:
        try:
            for _ in range(4):
                async with context.step():
                    await trio.sleep(1)
        finally:
            with trio.CancelScope(shield=True, relative_deadline=self.clean_up + 1):
                await trio.sleep(self.clean_up)
        return post.reply(post.message + "".join(f"+{said}" for said in await heard(context)))


class Boss(Actor):
    """Asks the clerk, then thinks."""

    name = "boss"

    def __init__(self, clerk: Clerk) -> None:
        self.subordinates = (clerk,)

    async def receive(self, post: Post, context: TurnContext) -> Post:
        answer = await context.ask("clerk", post.message)
        async with context.step():
            await trio.sleep(1)
        return post.reply(answer.message + "".join(f"+{said}@boss" for said in await heard(context)))


@dataclass(slots=True)
class Scene:
    """A conversation in some situation."""

    conversation: Conversation
    nursery: trio.Nursery
    started: Receipt | None = None
    """That of the round that ran when the situation came about, "q"."""
    outcomes: dict[str, str] = field(default_factory=dict)
    """What each call that waits has come to: "q" is the round's answer, "s" that of a send in line."""
    waiting: Receipt | None = None
    """That of the words "w", which waited when the situation came about."""

    def wait_for(self, name: str, function: Callable[[], Awaitable[Post | None]]) -> None:
        """Waits in the background; notes what came."""

        self.outcomes[name] = "waits"

        async def wait() -> None:
            try:
                post = await function()
            except CallboardError as error:
                self.outcomes[name] = f"raises {type(error).__name__}"
            else:
                self.outcomes[name] = "returns" if post is None else f"gives {post.message}"

        self.nursery.start_soon(wait)


Prepare = Callable[[Scene], Awaitable[None]]
"""Brings a conversation into a situation."""


async def start(scene: Scene) -> None:
    """A round runs; the clerk is in the middle of its second step."""
    scene.started = scene.conversation.communicate("q")
    scene.wait_for("q", scene.started.reply)
    await trio.sleep(1.5)


async def be_idle(scene: Scene) -> None:
    """Nothing has been said yet."""


async def be_paused_and_idle(scene: Scene) -> None:
    scene.conversation.pause()


async def be_paused(scene: Scene) -> None:
    await start(scene)
    scene.conversation.pause()
    await trio.sleep(1)


async def be_stopping(scene: Scene) -> None:
    """A stop whose clean-up takes five seconds is under way for one."""
    await start(scene)
    scene.conversation.stop("enough")
    await trio.sleep(1)


async def be_closed(scene: Scene) -> None:
    scene.conversation.begin_closing()


async def wait_for_a_step(scene: Scene) -> None:
    await start(scene)
    scene.waiting = scene.conversation.intervene("w", delivery="after_step")


async def wait_for_a_turn(scene: Scene) -> None:
    await start(scene)
    scene.waiting = scene.conversation.intervene("w", delivery="after_turn")


async def wait_for_a_step_and_be_paused(scene: Scene) -> None:
    await wait_for_a_step(scene)
    scene.conversation.pause()


async def stop_over_a_pause(scene: Scene) -> None:
    """A pause, a stop, which ends it, and a second pause while all unwinds."""
    await be_paused(scene)
    scene.conversation.stop("enough")
    scene.conversation.pause()
    await trio.sleep(1)


async def have_a_send_in_line(scene: Scene) -> None:
    await start(scene)
    scene.wait_for("s", lambda: scene.conversation.send("s"))
    await trio.sleep(0.1)


async def have_an_enqueue_in_line(scene: Scene) -> None:
    await start(scene)
    scene.conversation.enqueue("e")


async def stop_over_an_enqueue(scene: Scene) -> None:
    await have_an_enqueue_in_line(scene)
    scene.conversation.stop("enough")
    await trio.sleep(1)


async def hold_an_enqueue(scene: Scene) -> None:
    """All work has ended, and an enqueued round is held."""
    await have_an_enqueue_in_line(scene)
    scene.conversation.stop("enough")
    await scene.conversation.wait_idle()


STATES: dict[str, Prepare] = {
    "idle": be_idle,
    "running": start,
    "paused": be_paused,
    "stopping": be_stopping,
    "closed": be_closed,
}
"""The columns of the table of verbs."""

UNDER_WAY: dict[str, Prepare] = {
    "paused and idle": be_paused_and_idle,
    "words wait for a step": wait_for_a_step,
    "words wait for a step, paused": wait_for_a_step_and_be_paused,
    "words wait for a turn": wait_for_a_turn,
    "a paused round is stopped": stop_over_a_pause,
    "a send in line": have_a_send_in_line,
    "an enqueue in line": have_an_enqueue_in_line,
    "an enqueue in line, stopping": stop_over_an_enqueue,
    "an enqueue held": hold_an_enqueue,
}
"""The same, with another verb's work not done yet."""


@asynccontextmanager
async def scene_of(prepare: Prepare) -> AsyncIterator[Scene]:
    """A conversation in a situation. What still waits at the end is given up."""
    clean_up = 5.0 if prepare in (be_stopping, stop_over_a_pause, stop_over_an_enqueue) else 0.0
    async with trio.open_nursery() as nursery, open_conversation(Boss(Clerk(clean_up))) as conversation:
        scene = Scene(conversation, nursery)
        await prepare(scene)
        yield scene


SHOWN: dict[RoundState, str] = {"finished": "", "created": " open", "failed": " failed", "stopped": " stopped"}


def rounds(conversation: Conversation) -> str:
    """All rounds so far, in order, each with its state unless that is finished."""
    shown = (round_.user_query + SHOWN[round_.state] for round_ in conversation.transcript().rounds)
    return ", ".join(shown) or "none"
