"""Saving: a conversation as a file that lessons are made of.

The rule to know: thin, it keeps what was said and planned, and the user's words in the middle of the work as such: they
are what the user corrected. What roles had been given of earlier lessons is left out, so that none is drawn from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from callboard.runtime.attachment import AttachmentType
from callboard.runtime.json_value import EMPTY
from callboard.runtime.post import Post
from callboard.runtime.transcript import Transcript
from callboard.runtime.transcript_file import FilePath

from .lesson import file_name


def save_experience(transcript: Transcript, folder: FilePath, thin: bool = True) -> Path:
    """The path of the file `raw_exp_{id}.yaml` in the folder, written; the next refresh makes a lesson of it.

    The folder is made if it is not there; a file of the same conversation is replaced, as a whole or not at all. Blocks
    for a write. Raises OSError, and ValueError for an id that no lesson can have.
    """
    path = Path(folder) / file_name("raw_exp", transcript.id)
    kept = thinned(transcript) if thin else transcript
    path.parent.mkdir(parents=True, exist_ok=True)
    kept.save(path)
    return path


def thinned(transcript: Transcript) -> Transcript:
    """The transcript with plans as its only attachments, without the notes that say nothing then."""
    rounds = (replace(one, post_list=tuple(_thinned(one.post_list))) for one in transcript.rounds)
    return replace(transcript, rounds=tuple(rounds))


def _thinned(posts: tuple[Post, ...]) -> Iterator[Post]:
    for post in posts:
        plans = (one for one in post.attachment_list if one.type is AttachmentType.plan)
        kept = replace(post, attachment_list=tuple(replace(plan, extra=None) for plan in plans))
        if post.marks.kind != "note":
            yield kept
        elif kept.message or kept.attachment_list or post.marks.state == "partial":
            yield replace(kept, marks=replace(post.marks, extra=EMPTY))
