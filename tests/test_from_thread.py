"""Verbs called from threads that trio knows nothing of."""

import threading
from collections.abc import Callable
from functools import partial

import pytest
import trio

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import ConversationClosed, RoleFailed, RoundStopped, UnknownRole
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.receipt import Receipt
from tests.situations import rounds
from tests.test_interruption import log

SECONDS = 20
"""Within which a thread must have ended."""


class Waiting(Actor):
    """Works until somebody has said so many words, or for ever on "wait"; fails on "fail"."""

    name = "waiting"

    def __init__(self, words: int = 0) -> None:
        self.words = words

    async def receive(self, post: Post, context: TurnContext) -> Post:
        if post.message == "fail":
            raise ValueError("no such supplier")
        if post.message == "wait" and len(context.user_words) < self.words:
            await trio.sleep_forever()
        said = sorted(words.message for words in context.user_words)
        return post.reply(" ".join([post.message, *said]))


async def in_thread(*functions: Callable[[], object]) -> list[object]:
    """What each function gives, or raises, in a plain thread of its own, all at once."""
    outcomes: list[object] = [None] * len(functions)
    ended = [trio.Event() for _ in functions]
    token = trio.lowlevel.current_trio_token()

    def run(place: int) -> None:
        outcomes[place] = outcome_of(functions[place])
        token.run_sync_soon(ended[place].set)

    for place in range(len(functions)):
        threading.Thread(target=run, args=(place,), daemon=True).start()
    with trio.fail_after(SECONDS):
        for event in ended:
            await event.wait()
    return outcomes


def outcome_of(function: Callable[[], object]) -> object:
    """What it gives, or raises."""
    try:
        return function()
    except BaseException as error:
        return error


async def test_a_sync_verb_gives_what_it_gives() -> None:
    async with open_conversation(Waiting(1)) as conversation:
        started = conversation.communicate("wait")
        (receipt,) = await in_thread(partial(conversation.from_thread, conversation.intervene, "x", broadcast_level=2))
        assert isinstance(receipt, Receipt)
        assert receipt.action == "intervened"
        assert (await started.reply()).message == "wait x"


async def test_an_async_verb_is_waited_for() -> None:
    async with open_conversation(Waiting()) as conversation:
        (post,) = await in_thread(partial(conversation.from_thread, conversation.send, "q"))
        assert isinstance(post, Post)
        assert post.message == "q"
        assert await in_thread(partial(conversation.from_thread, conversation.wait_idle)) == [None]


async def test_what_a_receipt_waits_for_can_be_waited_for_in_a_thread() -> None:
    async with open_conversation(Waiting(1)) as conversation:

        def talk() -> str:
            conversation.from_thread(conversation.communicate, "wait")
            receipt = conversation.from_thread(conversation.communicate, "x")
            assert conversation.from_thread(receipt.seen)
            reply: Post = conversation.from_thread(receipt.reply)
            return reply.message

        assert await in_thread(talk) == ["wait x"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda conversation: partial(conversation.send, "fail"), RoleFailed),
        (lambda conversation: partial(conversation.intervene, "x", role="nobody"), UnknownRole),
        (lambda conversation: partial(conversation.communicate, "x", broadcast_level=0), ValueError),
    ],
    ids=["async", "sync", "refused"],
)
async def test_what_a_verb_raises_travels(call: Callable[[Conversation], object], expected: type[Exception]) -> None:
    async with open_conversation(Waiting()) as conversation:
        (error,) = await in_thread(partial(conversation.from_thread, call(conversation)))  # type: ignore[arg-type]
        assert type(error) is expected


async def test_a_stop_reaches_the_thread_that_waits() -> None:
    async with open_conversation(Waiting(1)) as conversation, trio.open_nursery() as nursery:

        async def stop() -> None:
            while rounds(conversation) == "none":
                await trio.lowlevel.checkpoint()
            assert await in_thread(partial(conversation.from_thread, conversation.stop, "enough")) == [None]

        nursery.start_soon(stop)
        (error,) = await in_thread(partial(conversation.from_thread, conversation.send, "wait"))
        assert isinstance(error, RoundStopped)


async def test_several_threads_speak_at_once() -> None:
    async with open_conversation(Waiting(16)) as conversation:
        started = conversation.communicate("wait")
        words = [f"{number:02}" for number in range(16)]
        calls = [partial(conversation.from_thread, conversation.intervene, word) for word in words]
        assert all(isinstance(receipt, Receipt) for receipt in await in_thread(*calls))
        assert (await started.reply()).message == " ".join(["wait", *words])
    assert sorted(line[-2:] for line in log(conversation) if "intervention" in line) == words


async def test_several_threads_send_at_once_and_each_gets_its_own_answer() -> None:
    async with open_conversation(Waiting()) as conversation:
        calls = [partial(conversation.from_thread, conversation.send, str(number)) for number in range(8)]
        posts = await in_thread(*calls)
        assert [post.message for post in posts if isinstance(post, Post)] == [str(number) for number in range(8)]


async def test_in_a_closed_conversation_a_verb_does_what_it_does_then() -> None:
    async with open_conversation(Waiting()) as conversation:
        pass
    sent, missed = await in_thread(
        partial(conversation.from_thread, conversation.send, "q"),
        partial(conversation.from_thread, conversation.intervene, "x"),
    )
    assert isinstance(sent, ConversationClosed)
    assert isinstance(missed, Receipt)
    assert missed.action == "missed"


def kept_beyond_trio() -> Conversation:
    """A conversation whose trio has ended."""
    kept: list[Conversation] = []

    async def main() -> None:
        async with open_conversation(Waiting()) as conversation:
            kept.append(conversation)

    trio.run(main)
    return kept[0]


def test_after_the_end_of_trio_the_conversation_is_closed() -> None:
    conversation = kept_beyond_trio()
    for call in (partial(conversation.send, "q"), conversation.wait_idle, partial(conversation.stop, "late")):
        with pytest.raises(ConversationClosed):
            conversation.from_thread(call)


def test_a_wait_that_trio_ends_over_is_closed_too() -> None:
    """No cancellation of trio's gets into a thread that has no scope to catch it."""
    outcomes: list[object] = []

    async def main() -> None:
        async with open_conversation(Waiting()) as conversation:
            forever = partial(conversation.from_thread, trio.sleep_forever)
            thread = threading.Thread(target=lambda: outcomes.append(outcome_of(forever)))
            thread.start()
            threads.append(thread)
            await trio.sleep(0.01)

    threads: list[threading.Thread] = []
    trio.run(main)
    threads[0].join(SECONDS)
    assert [type(outcome) for outcome in outcomes] == [ConversationClosed]


async def test_in_trios_own_thread_it_is_refused() -> None:
    async with open_conversation(Waiting()) as conversation:
        with pytest.raises(RuntimeError, match="thread"):
            conversation.from_thread(conversation.stop, "enough")
