"""Conversations to be interrupted: each shape of work that the invariants must survive.

Models wait on a bell that wakes all of them in one step, ten times a second: only a wait that is rescheduled can finish
at the tick at which it is cancelled, and that tick is what the invariants are about.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import trio

from callboard.runtime.actor import Actor
from callboard.runtime.context import LiveContext, TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import (
    AskCycle,
    CallboardError,
    ConversationClosed,
    NobodyToAsk,
    NoReply,
    RequestRecalled,
    RoleFailed,
    RoundStopped,
)
from callboard.runtime.limits import Limits
from callboard.runtime.memory import get_role_rounds
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.testing import Scenario, Watch
from callboard.runtime.tool import Report, Tool


class Bell:
    """Rings ten times a virtual second, for all roles of a run."""

    def __init__(self) -> None:
        self._next = trio.Event()

    async def ring(self, conversations: Sequence[Conversation]) -> None:
        """A conversation that is found paused goes on after five seconds."""
        self._next = trio.Event()
        paused = 0
        while True:
            await trio.sleep(0.1)
            rung, self._next = self._next, trio.Event()
            rung.set()
            paused = paused + 1 if any(conversation.paused for conversation in conversations) else 0
            if paused > 50:
                for conversation in conversations:
                    conversation.resume()

    async def wait(self) -> None:
        await self._next.wait()


the_bell = Bell()


async def ringing(times: int = 1) -> None:
    """Waits for so many rings."""
    for _ in range(times):
        await the_bell.wait()


async def heard(context: TurnContext) -> list[str]:
    """What the user said to this role in the middle of work, as its rounds in memory have it."""
    rounds = await get_role_rounds(context, context.role)
    posts = [post for round_ in rounds for post in round_.post_list]
    return [post.message for post in posts if post.marks.kind == "intervention"]


class Worker(Actor):
    """Streams pieces into its draft, records the whole, and answers with what it heard."""

    def __init__(self, name: str = "worker", pieces: int = 3) -> None:
        self.name = name
        self.pieces = pieces

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        words = await heard(context)
        await self.work(context)
        return post.reply(f"{self.name}{words}")

    async def work(self, context: TurnContext) -> None:
        for number in range(self.pieces):
            await ringing()
            context.draft.write(f"{context.role} {context.attempt}.{number};")
        text = context.draft.take()
        context.record(text)


async def look_up(pieces: int, report: Report) -> str:
    """A tool that says how far it is."""
    for number in range(pieces):
        await ringing()
        report(f"{number};")
    return "found"


class ToolUser(Worker):
    """Calls two tools at once."""

    async def work(self, context: TurnContext) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(context.call, Tool(look_up, name="a"), {"pieces": 1})
            nursery.start_soon(context.call, Tool(look_up, name="b"), {"pieces": self.pieces})


class Streamer(Worker):
    """Works in steps: a model streams, a tool is called, a model streams again."""

    async def work(self, context: TurnContext) -> None:
        await self.think(context, self.pieces)
        await context.call(Tool(look_up, name="a"), {"pieces": 1})
        await self.think(context, 1)

    async def think(self, context: TurnContext, pieces: int) -> None:
        async with context.step() as draft:
            for number in range(pieces):
                await ringing()
                draft.write(f"{context.role} {context.attempt}.{number};")
            text = draft.take()
            context.record(text)


class Careful(Worker):
    """Works in a block that is let finish: asks a subordinate there, and its superior."""

    subordinates = (Worker("helper", 1),)

    async def work(self, context: TurnContext) -> None:
        async with context.uninterruptible(grace=5):
            await ringing()
            try:
                await context.ask_superior("Which year?")
            except (RequestRecalled, NobodyToAsk):
                context.record("nobody says which year")
            await context.ask("helper", "do")
            context.record("block done")
        await super().work(context)


class Steady(Worker):
    """Calls a tool that is let finish."""

    async def work(self, context: TurnContext) -> None:
        await context.call(Tool(look_up, name="a", interruptible=False, grace=5), {"pieces": 2})
        await super().work(context)


class Thorough(Worker):
    """Takes steps in a block that is let finish, which no pause may delay, and asks two questions at once there."""

    async def work(self, context: TurnContext) -> None:
        async with context.uninterruptible(grace=5):
            for _ in range(6):
                await ringing()
                before = trio.current_time()
                async with context.step():
                    assert trio.current_time() == before, "a pause stopped a block that is let finish"
            async with trio.open_nursery() as nursery:
                for question in ("Which year?", "Which country?"):
                    nursery.start_soon(self.ask, question, context)
        await super().work(context)

    async def ask(self, question: str, context: TurnContext) -> None:
        with suppress(RequestRecalled, NobodyToAsk):
            await context.ask_superior(question)


class Thrifty(Worker):
    """Uses a part of what it may."""

    async def work(self, context: TurnContext) -> None:
        await ringing()
        context.spend(model_calls=1, input_tokens=10)
        await super().work(context)


class Curious(Worker):
    """Asks its superior in the middle of its work."""

    async def work(self, context: TurnContext) -> None:
        await ringing()
        answer = await context.ask_superior("Which year?")
        context.record(answer.message)
        await super().work(context)


class Unhurried(Worker):
    """Has something to save when it is interrupted."""

    async def on_interrupt(self, post: Post, context: TurnContext) -> None:
        await ringing()
        context.record("saved")


class LateWorker(Worker):
    """Writes, and records, while it cleans up for five seconds."""

    async def work(self, context: TurnContext) -> None:
        try:
            await super().work(context)
        except trio.Cancelled:
            context.draft.write("late;")
            with trio.CancelScope(shield=True, relative_deadline=6):
                await trio.sleep(5)
                context.record("cleaned up")
            raise


class FailingCleanUp(Worker):
    """Its clean-up raises."""

    async def work(self, context: TurnContext) -> None:
        try:
            await super().work(context)
        except trio.Cancelled as error:
            raise OSError("the clean-up failed") from error


class AskingCleanUp(Worker):
    """Asks a helper while it is being cancelled."""

    subordinates = (Worker("helper", 1),)

    async def work(self, context: TurnContext) -> None:
        try:
            await super().work(context)
        except trio.Cancelled:
            with trio.CancelScope(shield=True, relative_deadline=2):
                try:
                    await context.ask("helper", "tidy up")
                except CallboardError:
                    context.record("the helper was recalled")
            raise


class Swallower(Worker):
    """Swallows the first cancellation and goes on to its answer, which then stands."""

    async def work(self, context: TurnContext) -> None:
        try:
            await ringing(3)
        except trio.Cancelled:
            context.record("swallowed")


class Failing(Worker):
    """Works, then fails."""

    async def work(self, context: TurnContext) -> None:
        await super().work(context)
        raise ValueError("no such supplier")


class Silent(Worker):
    """Answers None."""

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        await super().receive(post, context)
        return None


class Lasting(Worker):
    """Has a lifetime that breaks once in a while under its work."""

    @asynccontextmanager
    async def live(self, context: LiveContext) -> AsyncIterator[str]:
        with trio.move_on_after(0.25):
            yield "kernel"


class Planner(Actor):
    """Asks all its subordinates at once, works a little, answers with their answers and with what it heard."""

    def __init__(self, name: str, *subordinates: Actor) -> None:
        self.name = name
        self.subordinates = subordinates

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        words = await heard(context)
        answers: list[str] = []

        async def ask(name: str) -> None:
            answers.append(await self.ask(name, context))

        async with trio.open_nursery() as nursery:
            for name in self.asked(context):
                nursery.start_soon(ask, name)
        await ringing()
        context.draft.write("summing up;")
        return post.reply(f"{self.name}{words}{sorted(answers)}")

    def asked(self, context: TurnContext) -> Sequence[str]:
        return context.subordinates

    async def ask(self, name: str, context: TurnContext) -> str:
        try:
            return (await context.ask(name, "do")).message
        except (RoleFailed, NoReply) as error:
            return type(error).__name__


class Trusting(Planner):
    """Does not expect its subordinates to fail."""

    async def ask(self, name: str, context: TurnContext) -> str:
        return (await context.ask(name, "do")).message


class Allotting(Trusting):
    """Lets each of its subordinates use only so much."""

    async def ask(self, name: str, context: TurnContext) -> str:
        context.spend(input_tokens=1)
        limits = Limits(replies=3, tokens=1000, seconds=20)
        return (await context.ask(name, "do", limits=limits)).message


class Peer(Trusting):
    """Asks a role that is not under it."""

    def __init__(self, name: str, other: str) -> None:
        super().__init__(name)
        self.other = other

    def asked(self, context: TurnContext) -> Sequence[str]:
        return [self.other]


class Mutual(Planner):
    """Asks somebody who may be waiting for it."""

    def __init__(self, name: str, other: str) -> None:
        super().__init__(name)
        self.other = other

    def asked(self, context: TurnContext) -> Sequence[str]:
        return [self.other]

    async def ask(self, name: str, context: TurnContext) -> str:
        try:
            return await super().ask(name, context)
        except AskCycle:
            return "circle"


class Answering(Trusting):
    """Thinks about what its subordinates ask back."""

    async def on_question(self, post: Post, context: TurnContext) -> Post | None:
        words = await heard(context)
        for number in range(2):
            await ringing()
            context.draft.write(f"year {number};")
        return post.reply(f"2025{words}")


class Starting(Planner):
    """Starts `background` without waiting for it, and asks the others; takes the report when it comes."""

    def asked(self, context: TurnContext) -> Sequence[str]:
        return [name for name in context.subordinates if name != "background"]

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        if post.send_from == "background":
            await ringing()
            return post.reply(f"{self.name} has {post.message}")
        context.start_background("background", "in your own time")
        return await super().receive(post, context)


class Teller(Planner):
    """Tells `background` once, and asks the others."""

    def asked(self, context: TurnContext) -> Sequence[str]:
        return [name for name in context.subordinates if name != "background"]

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        if context.attempt == 1:
            await context.tell("background", "in your own time")
        return await super().receive(post, context)


class Starter(Actor):
    """Starts a subordinate as it goes, asks it, ends it."""

    name = "starter"

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        words = await heard(context)
        name = await context.start_subordinate(Worker("started", 2))
        answer = await context.ask(name, "do")
        await context.end_subordinate(name)
        return post.reply(f"{self.name}{words}{answer.message}")


class Forwarder(Worker):
    """Hands every request on after a look at it."""

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        await heard(context)
        await ringing(2)
        return post.forward(to="clerk")


Host = Callable[[Conversation], Awaitable[None]]


async def send(conversation: Conversation, message: str) -> None:
    """Sends one message, which may be stopped."""
    with suppress(RoundStopped):
        await conversation.send(message)


async def ask_once(conversation: Conversation) -> None:
    """Sends one message and waits until everything is done."""
    await send(conversation, "q")
    await conversation.wait_idle()


async def later(question: Post) -> str:
    """A person who takes his time."""
    await ringing(3)
    return "2025"


async def put_in_line(conversation: Conversation) -> None:
    """Sends one message, and has enqueued others."""
    conversation.enqueue("first")
    second = conversation.enqueue("second")
    third = conversation.enqueue("third")
    await trio.sleep(0.25)
    third.edit("third, changed")
    second.withdraw()
    await send(conversation, "q")
    if conversation.queued():
        conversation.resume()
    await conversation.wait_idle()


async def ask_twice_at_once(conversation: Conversation) -> None:
    """Two hosts send; one stands in line."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(send, conversation, "first")
        nursery.start_soon(send, conversation, "second")
    await conversation.wait_idle()


async def come_back_later(conversation: Conversation) -> None:
    """Speaks again after all tasks have ended for want of work, and once in the step in which they do."""
    await send(conversation, "q")
    await trio.sleep(0.3)
    await send(conversation, "again")
    await trio.sleep(0.2)
    await ask_once(conversation)


async def give_up(conversation: Conversation) -> None:
    """Stops waiting in the middle of the work, then asks again."""
    with trio.move_on_after(0.35):
        await send(conversation, "q")
    await ask_once(conversation)


async def speak(conversation: Conversation) -> None:
    """Speaks in the middle of the work by itself, so that others meet the clean-up."""
    with suppress(RoundStopped):
        started = conversation.communicate("q")
        await trio.sleep(0.25)
        conversation.intervene("only 2025", broadcast_level=2)
        await started.reply()
    await conversation.wait_idle()


async def read_receipts(conversation: Conversation) -> None:
    """Speaks in the middle of the work, and holds what it is told of that against what it finds at the end."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(send, conversation, "q")
        await trio.sleep(0.25)
        receipt = conversation.intervene("and in 2025?", broadcast_level=2)
        stopped = await receipt.stopped()
    await conversation.wait_idle()
    assert await receipt.stopped() == stopped, "work was kept after all had stopped"


async def walk_away(conversation: Conversation) -> None:
    """Leaves the block over running work, while another host waits for it."""

    async def wait(receipt_of: str) -> None:
        try:
            await conversation.communicate(receipt_of).reply()
        except (ConversationClosed, RoundStopped):
            return

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, "q")
        await trio.sleep(0.35)
        conversation.begin_closing()


def scenario(make: Callable[[], Actor], *others: Actor, host: Host = ask_once, **options: Any) -> Scenario:
    """The conversation as `every_interrupt_point` runs it."""

    async def run(watch: Watch) -> None:
        watched: list[Conversation] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(the_bell.ring, watched)
            made = ConversationOptions(**{"limits": Limits(replies=100), **options})
            async with open_conversation(make(), *others, options=made) as conversation:
                watched.append(watch(conversation))
                await host(conversation)
            nursery.cancel_scope.cancel()

    return run


def workers(names: str, pieces: int = 2) -> list[Actor]:
    """A worker for each letter."""
    return [Worker(name, pieces) for name in names]


SCENARIOS: dict[str, Scenario] = {
    "depth 1": scenario(Worker),
    "depth 2": scenario(lambda: Trusting("boss", Worker())),
    "depth 3": scenario(lambda: Trusting("boss", Trusting("planner", Worker()))),
    "depth 4": scenario(lambda: Planner("boss", Planner("lead", Planner("planner", Worker())))),
    "several leaves": scenario(lambda: Trusting("boss", Trusting("planner", *workers("ab"), Worker("c", 4)))),
    "a deep branch beside a shallow one": scenario(
        lambda: Planner("boss", Planner("planner", Worker()), Worker("w", 4))
    ),
    "a shared worker": scenario(lambda: Trusting("boss", Peer("a", "w"), Peer("b", "w"), Worker("w", 2))),
    "a peer off the chain": scenario(lambda: Trusting("boss", Peer("peer", "outside")), Worker("outside")),
    "told work beside": scenario(lambda: Teller("boss", Worker("background", 6), Worker("w"))),
    "cleans up for five seconds": scenario(lambda: Trusting("boss", Trusting("planner", LateWorker()))),
    "clean-up that raises": scenario(lambda: Trusting("boss", FailingCleanUp())),
    "clean-up that asks": scenario(lambda: Trusting("boss", AskingCleanUp())),
    "swallows Cancelled": scenario(lambda: Trusting("boss", Swallower())),
    "tools": scenario(lambda: Trusting("boss", ToolUser())),
    "a failing subordinate": scenario(lambda: Planner("boss", Failing())),
    "None to an ask": scenario(lambda: Planner("boss", Silent())),
    "a mutual ask": scenario(lambda: Planner("boss", Mutual("a", "b"), Mutual("b", "a"))),
    "started on the way": scenario(Starter),
    "handed on": scenario(lambda: Trusting("boss", Forwarder("desk")), Worker("clerk", 2)),
    "handed on by the root": scenario(lambda: Forwarder("desk"), Worker("clerk", 2)),
    "a full mailbox": scenario(lambda: Trusting("boss", *(Peer(n, "w") for n in "abc")), Worker("w", 1), mailbox=1),
    "a lifetime that breaks": scenario(lambda: Planner("boss", Lasting())),
    "steps": scenario(lambda: Trusting("boss", Trusting("planner", Streamer()))),
    "a block that is let finish": scenario(lambda: Answering("boss", Answering("planner", Careful()))),
    "questions from a block": scenario(lambda: Trusting("lead", Answering("boss", Thorough("worker", 1)))),
    "blocks of several leaves": scenario(lambda: Answering("boss", Thorough("a", 1), Thorough("b", 2))),
    "a tool that is let finish": scenario(lambda: Trusting("boss", Steady())),
    "questions": scenario(lambda: Answering("boss", Curious("a", 1), Curious("b", 1), Worker("w", 4))),
    "a question passed on": scenario(lambda: Answering("boss", Trusting("planner", Curious("worker", 1)))),
    "a question to the host": scenario(lambda: Trusting("boss", Curious("worker", 1)), on_question=later),
    "background": scenario(lambda: Starting("boss", Worker("background", 6), Worker("w", 2))),
    "background of a leaf": scenario(lambda: Trusting("boss", Starting("planner", Worker("background", 1)))),
    "limits": scenario(
        lambda: Allotting("boss", Allotting("planner", Thrifty())), limits=Limits(replies=50, tokens=5000, seconds=100)
    ),
    "a hook at interruptions": scenario(lambda: Trusting("boss", Unhurried())),
    "in line for later": scenario(lambda: Planner("boss", Worker()), host=put_in_line),
    "spoken to while it cleans up": scenario(
        lambda: Planner("boss", Trusting("planner", LateWorker())), host=speak, idle_after=60
    ),
    "two hosts": scenario(lambda: Planner("boss", Worker()), host=ask_twice_at_once),
    "tasks end between rounds": scenario(lambda: Trusting("boss", Worker()), host=come_back_later, idle_after=0.2),
    "a host that times out": scenario(lambda: Planner("boss", Worker()), host=give_up),
    "a host that reads its receipts": scenario(
        lambda: Trusting("boss", Trusting("planner", LateWorker())), host=read_receipts
    ),
    "a closing conversation": scenario(lambda: Planner("boss", Worker("w", 9)), host=walk_away),
}
