"""Echo: the shortest role."""

from callboard.actors import Echo
from callboard.runtime.opening import open_conversation


async def test_it_answers_with_what_it_was_told() -> None:
    async with open_conversation(Echo()) as conversation:
        assert (await conversation.send("Hello.")).message == "Hello."


async def test_it_has_the_name_it_is_given() -> None:
    async with open_conversation(Echo("Wall")) as conversation:
        assert (await conversation.send("Hello.")).send_from == "Wall"
