"""Whatever text a transcript holds, its file gives it back, byte for byte, by whichever library."""

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.json_value import FrozenMapping
from callboard.runtime.markers import END, START
from callboard.runtime.post import Marks, Post
from callboard.runtime.round import Round
from callboard.runtime.shared_memory import SharedMemoryEntry
from callboard.runtime.text import Span, Text
from callboard.runtime.transcript import Transcript
from callboard.runtime.transcript_file import Dumper, Loader, PureDumper, PureLoader, dump, parse
from callboard.runtime.transcript_json import dump_json, parse_json
from callboard.runtime.transcript_shape import KNOWN_KEYS

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)

HOSTILE = [
    *("\x85", "\ufeff", "\r", "\u2028", "\u2029", "\x00", "\x07", "\x1b", "\x7f", "\x80", "\ud7ff", "\ue000", "\uffff"),
    *("\U0001f600", "\u0301", "\xa0", "\x85a", "a\r", "\ufeffa"),
    *("", " ", "  a", "a ", "\n", "\n\n a\n", "\t", "a\tb", "a\r\nb", ": ", "a: b", " #", "---", "...", "--- a"),
    *("1", "1.0", "1e5", "-.inf", ".nan", "0x1f", "0o7", "1_000", "1:30", "2024-01-31", "2024-01-31T07:45:22Z"),
    *("yes", "NO", "on", "null", "~", "true", "=", "<<", "- a", "? a", "*a", "&a", "!!a", "%a", "@", "`", "'", '"'),
    *("\\", "\\n", "|", ">", "{a: 1}", "[a]", ",", "é" * 130, "k" * 130, "word " * 40, "\x00" * 70),
    *(START, END, f"{START}a{END}", f"{START}{START}", START[:9], START[9:]),
]

texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(st.sampled_from(HOSTILE), max_size=4).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
scalars = st.one_of(texts, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
mappings = st.dictionaries(texts, values, max_size=2).map(FrozenMapping)

looks_marked = st.lists(st.sampled_from([START, f"{START}a{END}", END, "a"]), max_size=4).map("".join)


@st.composite
def _spanned(draw: st.DrawFn) -> Text:
    string = draw(texts | looks_marked)
    bounds = st.integers(0, len(string))
    cuts = sorted(draw(st.lists(bounds, unique=True, max_size=6)))
    # Every second stretch between two cuts, and sometimes the ones that touch.
    pairs = pairwise(cuts)
    stretches = [pair for number, pair in enumerate(pairs) if number % 2 == 0 or draw(st.booleans())]
    return Text(string, tuple(Span(start, end) for start, end in stretches))


spanned = _spanned()
entries = st.builds(
    SharedMemoryEntry.create,
    st.sampled_from(["plan", "experience_sub_path"]),
    texts,
    st.sampled_from(["round", "conversation"]),
    texts.filter(bool),
)
plain_types = st.sampled_from([type_ for type_ in AttachmentType if type_ not in ("text", "shared_memory_entry")])
attachments = st.one_of(
    st.builds(Attachment.create, plain_types.filter(lambda type_: type_ != "artifact_paths"), spanned, texts, values),
    st.builds(Attachment.create, st.just("artifact_paths"), texts, texts, values),
    st.builds(Attachment.create, st.just("shared_memory_entry"), spanned, texts, entries),
    st.builds(Attachment.create, st.just("artifact_paths"), st.lists(texts, max_size=2), texts),
)
marks = st.builds(
    Marks,
    st.none() | texts,
    st.sampled_from(["message", "note", "intervention"]),
    st.sampled_from(["whole", "partial"]),
    texts,
    st.none() | texts,
    st.lists(texts, max_size=2).map(tuple),
    mappings,
)
unsaid = st.builds(Post, texts, texts, texts, st.just(""), st.lists(attachments, max_size=2).map(tuple), marks)
posts = st.builds(Post.with_text, unsaid, spanned)
states = st.sampled_from(["created", "finished", "failed", "stopped"])
rounds = st.builds(Round, texts, texts, states, st.lists(posts, max_size=2).map(tuple))
extras = st.dictionaries(texts.filter(lambda key: key not in KNOWN_KEYS), values, max_size=2).map(FrozenMapping)
transcripts = st.builds(
    Transcript,
    texts,
    st.lists(rounds, max_size=2).map(tuple),
    st.lists(values, max_size=2).map(tuple),
    st.lists(texts, max_size=2).map(tuple),
    st.booleans(),
    extras,
)


@quick
@given(transcripts)
def test_a_transcript_survives_its_file_byte_for_byte(transcript: Transcript) -> None:
    with TemporaryDirectory() as folder:
        first, second = Path(folder, "first.yaml"), Path(folder, "second.yaml")
        transcript.save(first)
        restored = Transcript.restore_yaml(first)
        restored.save(second)
        assert restored == transcript
        assert second.read_bytes() == first.read_bytes()


@quick
@given(transcripts)
def test_a_transcript_survives_its_json_byte_for_byte(transcript: Transcript) -> None:
    written = dump_json(transcript.to_dict())
    restored = Transcript.restore(parse_json(written.decode()))
    assert restored == transcript
    assert dump_json(restored.to_dict()) == written


@quick
@given(transcripts)
def test_both_writers_write_the_same_bytes_and_both_readers_read_the_same(transcript: Transcript) -> None:
    written = dump(transcript.to_dict(), PureDumper)
    assert written == dump(transcript.to_dict(), Dumper)
    fast, pure = parse(written.decode(), Loader), parse(written.decode(), PureLoader)
    assert repr(fast) == repr(pure) == repr(transcript.to_dict())


@quick
@given(transcripts)
def test_a_new_transcript_of_an_old_one_says_the_same(transcript: Transcript) -> None:
    fresh = Transcript.from_dict(transcript.to_dict())
    assert [said(round_) for round_ in fresh.rounds] == [said(round_) for round_ in transcript.rounds]
    assert (fresh.plugins, fresh.enabled, fresh.extra) == (transcript.plugins, transcript.enabled, transcript.extra)


def said(round_: Round) -> list[object]:
    posts = [(post.send_from, post.send_to, post.text, post.attachment_list) for post in round_.post_list]
    return [round_.user_query, round_.state, posts]


@pytest.mark.parametrize("character", ["a", "\x85", "\n"])
def test_a_line_of_a_million_characters_survives(character: str, tmp_path: Path) -> None:
    post = Post("post-1", "User", "Planner", character * 1_000_000)
    transcript = Transcript("conv-1", (Round("round-1", "", "created", (post,)),))
    transcript.save(tmp_path / "notes.yaml")
    assert Transcript.restore_yaml(tmp_path / "notes.yaml") == transcript
