"""Record: what a transcript must be whatever happened: in the order in which it was made, and loading as it was saved.

Both say in words what is wrong, and nothing if nothing is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .errors import InvalidFile
from .post import Post
from .transcript import Transcript
from .transcript_file import dump, parse


def find_disorder(kept: Sequence[Post], recorded: Sequence[Post]) -> Iterator[str]:
    """Of each sender's posts to each recipient: those that are kept in another order than recorded, or made in one.

    A reply, or a post that hands a request on, is made by the role, and recorded when the role returns it: what it
    recorded meanwhile was made later and stands before. It says nothing about the order.
    """
    newest: dict[tuple[str, str], str] = {}
    for post in kept:
        if not _returned(post):
            way = (post.send_from, post.send_to)
            if post.id < newest.get(way, ""):
                yield f"{post.id} from {post.send_from} to {post.send_to} stands behind {newest[way]}"
            newest[way] = post.id
    if kept != recorded:  # what is the same as a whole need not be compared way by way
        before, after = _ids_by_way(recorded), _ids_by_way(kept)
        for (sender, recipient), ids in before.items():
            if after.get((sender, recipient)) != ids:
                yield f"{sender} to {recipient}: {ids} were recorded, {after.get((sender, recipient))} are kept"


def find_change(transcript: Transcript) -> list[str]:
    """What becomes of a transcript that is written as YAML and read again, if that is not the same one."""
    text = dump(transcript.to_dict()).decode()
    try:
        loaded = Transcript.restore(parse(text))
    except InvalidFile as error:
        return [f"what was written does not load: {error}"]
    if loaded == transcript:
        return []
    pairs = zip(_posts(transcript), _posts(loaded), strict=False)
    changed = next((f"{before} became {after}" for before, after in pairs if before != after), "")
    return [f"the transcript was written and came back another one: {changed or loaded.to_dict()}"]


def _ids_by_way(posts: Iterable[Post]) -> dict[tuple[str, str], list[str]]:
    ways: dict[tuple[str, str], list[str]] = {}
    for post in posts:
        ways.setdefault((post.send_from, post.send_to), []).append(post.id)
    return ways


def _returned(post: Post) -> bool:
    marks = post.marks
    return marks.in_reply_to is not None and post.send_from != post.send_to and marks.state == "whole"


def _posts(transcript: Transcript) -> list[Post]:
    return [post for round_ in transcript.rounds for post in round_.post_list]
