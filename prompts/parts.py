"""Parts: the images and files among attachments, as a model is shown them, and how text names them.

The rule to know: nothing is read or fetched. What is no data: URL, nor for an image a web address, is named and not
shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.chat_model import FilePart, ImagePart, Part

IMAGE, FILE = "image_url", "file_url"
"""The keys of an attachment's `extra` under which the address of an image and the data of a file stand."""

_DATA = "data:"
_WEB = ("https://", "http://")


def parts_of(attachments: Iterable[Attachment]) -> tuple[Part, ...]:
    """The images, and the files of which the data are there, in order.

    An ``image_url`` has its address in ``extra["image_url"]`` or is it; an ``artifact_paths`` of one path may have the
    file as a data: URL in ``extra["file_url"]``.
    """
    return tuple(part for one in attachments for part in _parts(one))


def names_of(attachment: Attachment) -> tuple[str, ...]:
    """How text names an attachment: by its content, save for data, which is called what it is."""
    content = (attachment.content,) if isinstance(attachment.content, str) else attachment.content
    if attachment.type is AttachmentType.image_url:
        return tuple("an image" if _is_data(text) or not text else text for text in content)
    return content


def _parts(attachment: Attachment) -> Iterator[Part]:
    match attachment.type, attachment.content:
        case AttachmentType.image_url, str(content):
            url = _extra(attachment, IMAGE) or content
            if _is_data(url) or url.lower().startswith(_WEB):
                yield ImagePart(url)
        case AttachmentType.artifact_paths, (path,):
            url = _extra(attachment, FILE)
            if _is_data(url):
                yield FilePart(PurePosixPath(path.replace("\\", "/")).name or path, url)


def _extra(attachment: Attachment, key: str) -> str:
    """The text under that key, or under `url` in what stands there, as OpenAI nests it."""
    found = attachment.extra.get(key) if isinstance(attachment.extra, Mapping) else None
    if isinstance(found, Mapping):
        found = found.get("url")
    return found if isinstance(found, str) else ""


def _is_data(url: str) -> bool:
    return url[: len(_DATA)].lower() == _DATA
