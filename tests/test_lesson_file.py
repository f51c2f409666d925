"""The files of lessons: TaskWeaver's fields, whoever wrote them and however."""

from unittest import mock

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from callboard.experience import lesson_file
from callboard.experience.lesson_file import Record, digest, read_record, read_text_of, write_record
from callboard.runtime.embedder import Matrix
from callboard.runtime.errors import InvalidFile

from .lessons import HANDCRAFTED, OLD
from .test_lesson import ids

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).filter(str.strip)
numbers = st.floats(-1, 1, width=32).filter(lambda number: number == 0 or abs(number) > 1e-18)
vectors = arrays(np.float32, st.integers(0, 6), elements=numbers)
marks = st.sampled_from(["", digest(b"a")])


def unit(vector: Matrix) -> Matrix:
    length = np.linalg.norm(vector.astype(np.float64))
    return vector if length == 0 else (vector / length).astype(np.float32)


records = st.builds(
    Record, ids, texts, st.none() | texts, st.none() | texts, vectors.map(unit), marks, marks, st.just({"note": 1})
)


@settings(max_examples=30, deadline=None)
@given(records)
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    read = read_record(write_record(record), record.id)
    assert read == record
    assert np.allclose(read.vector, record.vector, rtol=1e-6, atol=1e-30)


@settings(max_examples=30, deadline=None)
@given(records)
def test_yaml_finds_the_five_fields_in_their_order(record: Record) -> None:
    read = yaml.safe_load(write_record(Record(record.id, record.text, record.raw_path, "m", record.vector)))
    assert list(read) == ["exp_id", "experience_text", "raw_experience_path", "embedding_model", "embedding"]
    assert (read["exp_id"], read["experience_text"]) == (record.id, record.text)
    assert read["embedding"] == pytest.approx(record.vector.tolist(), abs=1e-6)
    assert all(isinstance(number, float) for number in read["embedding"])


def test_a_small_number_is_one_for_yaml_too() -> None:
    data = write_record(Record("a", "x", vector=np.array([1, 1e-05, -1.5e-10], np.float32)))
    assert yaml.safe_load(data)["embedding"] == pytest.approx([1, 1e-05, -1.5e-10])


def test_a_file_of_the_originals_is_read() -> None:
    record = read_record(OLD.encode(), "greet")
    assert (record.id, record.text, record.raw_path) == ("greet", "- Answer politely.", None)
    assert (record.embedder, record.source, record.embedded) == ("all-mpnet-base-v2", "", "")
    assert np.allclose(record.vector, [0.4472136, -0.8944272])
    assert read_text_of(HANDCRAFTED.encode(), "greet") == "- Answer politely."


FORMS = {
    "a line": "embedding: [0.3, -0.4]\n",
    "lines": "embedding:\n- 0.3\n- -0.4\n",
    "indented": "embedding:\n  - 0.3\n  - -0.4\n",
    "YAML's own": "embedding: [.3, -4.0e-1]\n",
    "several lines": "embedding: [0.3,\n  -0.4]\n",
    "a comment": "embedding: [0.3, -0.4] # here\n",
    "a key behind": "embedding: [0.3, -0.4]\nnote: x\n",
    "no line end": "embedding: [0.3, -0.4]",
    "CRLF": "embedding:\r\n- 0.3\r\n- -0.4\r\n",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_vector_is_read_in_every_form_that_yaml_has(form: str) -> None:
    record = read_record(f"exp_id: a\nexperience_text: x\n{form}".encode(), "a")
    assert np.allclose(record.vector, [0.6, -0.8])


@pytest.mark.parametrize("form", [FORMS["a line"], FORMS["lines"]], ids=["a line", "lines"])
def test_a_vector_in_a_plain_form_is_not_read_by_yaml(form: str) -> None:
    with mock.patch.object(lesson_file, "_read_slowly", side_effect=AssertionError):
        read_record(f"exp_id: a\nexperience_text: x\n{form}".encode(), "a")


@pytest.mark.parametrize("text", ["a\n\nembedding: [1]\n", "a\nembedding:\n- 1\n", "embedding: [1]"])
def test_a_lesson_about_embeddings_keeps_its_text(text: str) -> None:
    for data in (write_record(Record("a", text)), yaml.safe_dump({"exp_id": "a", "experience_text": text}).encode()):
        record = read_record(data, "a")
        assert record.text == text
        assert record.vector.size == 0


BAD = {
    "a list": ("- 1\n", "this is no mapping of fields", 1),
    "empty": ("", "this is no mapping of fields", 1),
    "no id": ("experience_text: x\n", "the id is missing", 1),
    "another id": ("exp_id: b\nexperience_text: x\n", "the id is 'b', and the file is named for 'a'", 1),
    "a list for an id": ("exp_id: [a]\nexperience_text: x\n", "the id is", 1),
    "no text": ("exp_id: a\n", "experience_text is of type NoneType", 1),
    "an empty text": ("exp_id: a\nexperience_text: ' '\n", "the lesson is empty", 2),
    "a number": ("exp_id: a\nexperience_text: 1\n", "of type int", 2),
    "half a pair": ('exp_id: a\nexperience_text: "\\ud800"\n', "", 2),
    "words": ("exp_id: a\nexperience_text: x\nembedding: [a]\n", "this is no list of numbers", 3),
    "truths": ("exp_id: a\nexperience_text: x\nembedding: [true]\n", "this is no list of numbers", 3),
    "no number": ("exp_id: a\nexperience_text: x\nembedding: [.nan]\n", "the numbers are too large, or none", 3),
    "twice": ("exp_id: a\nexperience_text: x\nembedding: [1]\nembedding: [2]\n", "stands twice", 4),
    "broken": ("exp_id: a\nexperience_text: [x\n", "expected", 3),
}


@pytest.mark.parametrize(("text", "message", "line"), BAD.values(), ids=BAD)
def test_what_is_no_lesson_is_told_with_its_line(text: str, message: str, line: int) -> None:
    with pytest.raises(InvalidFile) as caught:
        read_record(text.encode(), "a")
    assert message in caught.value.message
    assert caught.value.line == line


def test_what_is_no_utf_8_is_told_with_its_line() -> None:
    with pytest.raises(InvalidFile, match="line 2: this is no UTF-8"):
        read_record(b"exp_id: a\nexperience_text: \xff\n", "a")


@pytest.mark.parametrize(("written", "id"), [("1", "1"), ("2024-01-31", "2024-01-31"), ("'007'", "007")])
def test_an_id_that_yaml_reads_as_something_else_is_text(written: str, id: str) -> None:
    assert read_record(f"exp_id: {written}\nexperience_text: x\n".encode(), id).id == id


@pytest.mark.parametrize(("written", "id"), [("007", "007"), ("true", "True"), ("1.0", "1"), ("1_0", "1_0")])
def test_an_id_that_yaml_changes_is_refused(written: str, id: str) -> None:
    with pytest.raises(InvalidFile, match="write exp_id: "):
        read_record(f"exp_id: {written}\nexperience_text: x\n".encode(), id)


def test_line_ends_make_no_other_digest() -> None:
    assert digest(b"a\r\nb") == digest(b"a\nb") != digest(b"ab")
