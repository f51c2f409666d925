"""A real model on this machine, behind `../shared/tools/local-model`: its replies stream, and a cut ends its work."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Annotated

import httpx
import pytest
import trio
from pydantic import BaseModel, StringConstraints

from callboard.actors.planner import Planner
from callboard.actors.role import Role
from callboard.prompts.reply_format import Reply
from callboard.runtime.chat_model import ChatRequest, Delta, EndDelta, Message, ReplySchema, TextDelta
from callboard.runtime.context import TurnContext
from callboard.runtime.event import DraftGrew
from callboard.runtime.json_value import FrozenMapping
from callboard.runtime.model_event import ModelCalled
from callboard.runtime.models import HttpChatModel
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.retrying_model import RetryingModel

START = Path(__file__).parents[2] / "shared/tools/local-model/start"

MOST_SECONDS = 240
"""For installing and starting; what takes longer is left out."""

# The first start installs the server and the model.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """The address of a server that has loaded its model."""
    if not START.exists():
        pytest.skip(f"there is no {START}")
    if shutil.which("node") is None:
        pytest.skip("the server of the local model needs node")
    with subprocess.Popen([START, "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        patience = Timer(MOST_SECONDS, process.terminate)
        patience.start()
        try:
            address = listening(process.stdout)
            patience.cancel()
            yield address
        finally:
            patience.cancel()
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def listening(lines: Iterator[str]) -> str:
    """The address that the server prints when it is ready."""
    for line in lines:
        if found := re.match(r"listening on (http://\S+)", line):
            return found[1]
    pytest.skip("the server of the local model could not be installed or started")


async def stats(base_url: str) -> dict[str, int]:
    """What the server counts."""
    async with httpx.AsyncClient() as client:
        counts: dict[str, int] = (await client.get(base_url.removesuffix("/v1") + "/stats")).json()
    return counts


def asking(words: str) -> ChatRequest:
    return ChatRequest("writer", (Message("user", words),))


async def test_a_real_model_streams_its_reply(base_url: str) -> None:
    before = await stats(base_url)
    with trio.fail_after(120):
        async with (
            HttpChatModel(base_url, name="gemma-3-270m", max_tokens=60, temperature=0) as model,
            model.stream(asking("Name three colours.")) as deltas,
        ):
            came: list[Delta] = [delta async for delta in deltas]
    pieces = [delta.text for delta in came if isinstance(delta, TextDelta)]
    print("".join(pieces), len(pieces), await stats(base_url))
    assert len(pieces) > 2 and isinstance(came[-1], EndDelta)
    assert (await stats(base_url))["finished"] == before["finished"] + 1


async def test_a_cut_ends_the_work_of_the_server(base_url: str) -> None:
    before = await stats(base_url)
    came: list[str] = []
    with trio.fail_after(120):
        async with HttpChatModel(base_url, name="gemma-3-270m", max_tokens=2000) as model:
            with trio.CancelScope() as scope:
                async with model.stream(asking("Write a very long story about the sea.")) as deltas:
                    async for delta in deltas:
                        came.append(delta.text if isinstance(delta, TextDelta) else repr(delta))
                        if len(came) == 5:
                            scope.cancel()
        start = trio.current_time()
        while (await stats(base_url))["aborted"] == before["aborted"]:
            await trio.lowlevel.checkpoint()
    print(came, f"counted after {trio.current_time() - start:.3f} s", await stats(base_url))
    after = await stats(base_url)
    assert (after["aborted"], after["finished"]) == (before["aborted"] + 1, before["finished"])


SCHEMA = ReplySchema(
    "reply",
    FrozenMapping(
        {
            "type": "object",
            "properties": {
                "send_to": {"enum": ["User", "Worker"]},
                "message": {"type": "string", "maxLength": 60},
            },
            "required": ["send_to", "message"],
            "additionalProperties": False,
        }
    ),
)


async def test_a_reply_is_of_its_schema(base_url: str) -> None:
    request = ChatRequest("writer", (Message("user", "Greet the user in one sentence."),), SCHEMA)
    async with HttpChatModel(base_url, name="gemma-3-270m", max_tokens=120, temperature=0) as model:
        with trio.fail_after(120):
            async with model.stream(request) as deltas:
                text = "".join([delta.text async for delta in deltas if isinstance(delta, TextDelta)])
        print(text, model.statistics())
        reply = json.loads(text)
        assert reply["send_to"] in ("User", "Worker") and isinstance(reply["message"], str) and len(reply) == 2
        assert model.statistics().schema_as == "json_schema"


class Writer(Role):
    """Answers with what its model replies."""

    name = "Writer"
    template = "You are a writer."

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply(await self.think(context, await self.messages(post, context)))


async def test_words_of_the_user_end_the_work_of_the_server_and_the_answer_is_another(base_url: str) -> None:
    before = await stats(base_url)
    with trio.fail_after(240):
        async with (
            HttpChatModel(base_url, name="gemma-3-270m", max_tokens=30) as model,
            open_conversation(Writer(RetryingModel(model))) as conversation,
        ):
            events = conversation.events()
            started = conversation.communicate("Write a very long story about the sea.")
            async for event in events:
                if isinstance(event, DraftGrew):
                    break
            receipt = conversation.intervene("Say only: hello.")
            kept = await receipt.stopped()
            while (await stats(base_url))["aborted"] == before["aborted"]:
                await trio.lowlevel.checkpoint()
            answer = await started.reply()
    called = [event async for event in events if isinstance(event, ModelCalled)]
    after = await stats(base_url)
    print(kept.posts[0].message, "|", answer, after, called)
    assert (after["aborted"], after["finished"]) == (before["aborted"] + 1, before["finished"] + 1)
    assert len(called) == 2 and all(call.first_delta is not None for call in called)
    assert [post.marks.state for post in kept.posts] == ["partial"]


class ShortReply(BaseModel):
    """What a small model can hold to."""

    send_to: str
    message: Annotated[str, StringConstraints(min_length=1, max_length=60)]


class Editor(Planner):
    """A planner that must ask its writer before it answers: the schema leaves its model no other choice."""

    template = (
        "You are an editor. Have {{subordinates}} write what the user asks for, then tell the user.\n{{reply_format}}"
    )
    reply_format = "Reply with a JSON object: response, with send_to and message."
    reply_model = ShortReply
    has_asked = False

    def recipients(self, post: Post, context: TurnContext) -> tuple[str, ...]:
        return (post.send_from,) if self.has_asked else ("Writer",)

    async def _direct(self, reply: Reply, context: TurnContext) -> None:
        self.has_asked = True
        await super()._direct(reply, context)


async def test_a_planner_and_a_worker_get_through_a_round(base_url: str) -> None:
    with trio.fail_after(240):
        async with HttpChatModel(base_url, name="gemma-3-270m", max_tokens=120, temperature=0) as model:
            editor = Editor(model, name="Editor", subordinates=[Writer(model)])
            async with open_conversation(editor) as conversation:
                answer = await conversation.send("A sentence about the sea.")
            posts = conversation.transcript().rounds[0].post_list
    for post in posts:
        print(f"{post.send_from} > {post.send_to}: {post.message}")
    asked = [(post.send_from, post.send_to) for post in posts if post.send_from != post.send_to]
    assert asked == [("User", "Editor"), ("Editor", "Writer"), ("Writer", "Editor"), ("Editor", "User")]
    assert answer == posts[-1] and answer.message
