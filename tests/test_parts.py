"""Parts: images and files among attachments; nothing is read from anywhere."""

from pathlib import Path

import pytest

from callboard.actors import Role
from callboard.prompts.parts import names_of, parts_of
from callboard.runtime.attachment import Attachment
from callboard.runtime.chat_model import FilePart, ImagePart, Message
from callboard.runtime.context import TurnContext
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.scripted_model import ScriptedModel
from callboard.runtime.user_message import UserMessage

PNG = "data:image/png;base64,iVBO"
CSV = "data:text/csv;base64,YSxi"


def image(content: str, extra: object = None) -> Attachment:
    """An image."""
    return Attachment.create("image_url", content, extra=extra)  # type: ignore[arg-type]  # any JSON value


def file(*paths: str, extra: object = None) -> Attachment:
    """Files."""
    return Attachment.create("artifact_paths", paths, extra=extra)  # type: ignore[arg-type]  # any JSON value


@pytest.mark.parametrize(
    ("attachment", "url"),
    [
        (image(PNG), PNG),
        (image("https://example.org/a.png"), "https://example.org/a.png"),
        (image("HTTP://example.org/a.png"), "HTTP://example.org/a.png"),
        (image("the chart", {"image_url": PNG}), PNG),
        (image("a.png", {"image_url": {"url": PNG, "detail": "low"}}), PNG),
    ],
)
def test_an_image_whose_address_is_in_the_post_is_shown(attachment: Attachment, url: str) -> None:
    assert parts_of([attachment]) == (ImagePart(url),)


@pytest.mark.parametrize(
    "attachment",
    [
        image("a.png"),
        image("file:///etc/passwd"),
        image("a", {"image_url": "/etc/passwd"}),
        image("a", {"image_url": 3}),
        image("", "x"),
        file("a.csv"),
        file("a.csv", extra={"file_url": "https://example.org/a.csv"}),
        file("a.csv", "b.csv", extra={"file_url": CSV}),
        Attachment.create("thought", PNG),
    ],
)
def test_what_has_no_data_in_the_post_is_no_part(attachment: Attachment) -> None:
    assert parts_of([attachment]) == ()


def test_nothing_is_read_from_disk(tmp_path: Path) -> None:
    there = tmp_path / "a.png"
    there.write_bytes(b"secret")
    assert parts_of([image(str(there)), image("a", {"image_url": str(there)}), file(str(there))]) == ()


@pytest.mark.parametrize("path", ["a.csv", "in/here/a.csv", "C:\\here\\a.csv"])
def test_a_file_with_its_data_is_handed_over_by_its_last_name(path: str) -> None:
    assert parts_of([file(path, extra={"file_url": CSV})]) == (FilePart("a.csv", CSV),)


def test_parts_keep_the_order_of_the_attachments() -> None:
    both = [file("a.csv", extra={"file_url": CSV}), image(PNG)]
    assert parts_of(both) == (FilePart("a.csv", CSV), ImagePart(PNG))


def test_text_names_files_and_images_but_holds_no_data() -> None:
    named = [names_of(one) for one in (file("a", "b"), image("the chart"), image(PNG), image(""))]
    assert named == [("a", "b"), ("the chart",), ("an image",), ("an image",)]


async def test_what_a_user_shows_reaches_the_model() -> None:
    shown = UserMessage("What is this?", attachments=(image("the chart", {"image_url": PNG}), image("a.png")))
    with ScriptedModel({"Viewer": ["A chart."]}) as model:
        async with open_conversation(Viewer(model)) as conversation:
            await conversation.send(shown)
    (request,) = model.requests
    assert request.messages[-1] == Message(
        "user", '{"user_message": "What is this?", "attachments": ["the chart", "a.png"]}', (ImagePart(PNG),)
    )


class Viewer(Role):
    """Says what it sees."""

    name = "Viewer"
    template = "You are {{name}}."

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply(await self.think(context, await self.messages(post, context)))
