"""A model's key is with the server and nowhere else: in no repr, log, event, error, transcript or cassette."""

import copy
import json
import logging
import pickle
import traceback
from pathlib import Path

import pytest

from callboard.actors.role import Role
from callboard.runtime.backoff import Backoff
from callboard.runtime.chat_model import ChatModel
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import ModelError, RoleFailed
from callboard.runtime.fallback_model import FallbackModel
from callboard.runtime.models import AnthropicModel, HttpChatModel
from callboard.runtime.models.endpoint import ApiKey
from callboard.runtime.models.http_embedder import HttpEmbedder
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.recording_model import RecordingModel
from callboard.runtime.retrying_model import RetryingModel

from .model_server import Answer, Exchange, ask, hello, served, status

KEY = "sk-very-secret-0123456789"
HEADER = "another-secret-0123456789"
ECHO = json.dumps({"error": {"message": f"wrong key: Bearer {KEY}, {HEADER}"}})


class Writer(Role):
    """Answers with what its model replies."""

    name = "Writer"
    template = "Write."

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply(await self.think(context, await self.messages(post, context)))


def echoing(first: str, then: Answer) -> Answer:
    """A server that first echoes the secrets in an error."""
    left = [status(first, ECHO)]

    async def answer(exchange: Exchange) -> None:
        await (left.pop() if left else then)(exchange)

    return answer


async def held(url: str, folder: Path) -> list[str]:
    """All that anybody can see of a conversation whose model has these secrets, as texts."""
    seen: list[str] = []
    async with HttpChatModel(url, name="small", headers={"X-Key": HEADER}) as http:
        recording = RecordingModel(http, folder / "cassette.jsonl")
        model: ChatModel = FallbackModel([RetryingModel(recording, backoff=Backoff(attempts=2, first=0))])
        async with open_conversation(Writer(model)) as conversation:
            events = conversation.events()
            try:
                await conversation.send("Greet.")
            except RoleFailed as failed:
                seen += ["".join(traceback.format_exception(failed)), repr(failed.__cause__), str(failed)]
                seen += [repr(pickle.loads(pickle.dumps(failed))), repr(copy.deepcopy(failed))]
            conversation.transcript().save(folder / "transcript.yaml")
            seen += [repr(conversation), repr(conversation.statistics()), repr(conversation.usage)]
        seen += [repr(event) async for event in events]
        inner = [http, http._endpoint, http._endpoint.errors, http._endpoint.connection, http._forms]
        seen += [repr(one) for one in (recording, model, http.statistics(), *inner)]
    return [*seen, *files(folder)]


def files(folder: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in folder.iterdir()]


@pytest.mark.parametrize("first", ["401 Unauthorized", "500 Oops"], ids=["fails", "is made again"])
async def test_a_key_of_the_environment_is_with_the_server_and_nowhere_else(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CALLBOARD_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    async with served(echoing(first, hello)) as (server, url):
        seen = await held(url, tmp_path)
    assert KEY in server.requests[0].head and HEADER in server.requests[0].head
    assert any("wrong key" in text for text in seen) and len(seen) > 15
    assert not [text for text in (*seen, caplog.text) if KEY in text or HEADER in text]


async def test_the_keys_of_the_other_models_are_as_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLBOARD_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    async with (
        served(status("401 Unauthorized", ECHO.replace(HEADER, ""))) as (server, url),
        AnthropicModel(url, name="claude") as model,
        HttpEmbedder(url, name="small", dimension=2) as embedder,
    ):
        with pytest.raises(ModelError) as first:
            await embedder.embed(["a"])
        with pytest.raises(ModelError) as second:
            await ask(model)
        shown = [
            repr(ApiKey(KEY)),
            repr(model),
            repr(embedder),
            repr(model._endpoint),
            str(first.value),
            str(second.value),
        ]
    assert all(KEY in exchange.head for exchange in server.requests) and len(server.requests) == 2
    assert not any(KEY in text for text in shown)
