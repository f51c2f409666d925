"""The ids of lessons and the names of their files."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.experience.lesson import KINDS, check_id, file_name, is_misnamed, read_name

ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", fullmatch=True)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(KINDS), ids)
def test_a_name_says_the_kind_and_the_id_that_it_was_made_of(kind: str, id: str) -> None:
    for one in KINDS:
        if one == kind:
            assert read_name(file_name(one, id)) == (kind, id)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=120))
def test_every_text_is_an_id_or_refused(text: str) -> None:
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", text, re.ASCII):
        assert check_id(text) == text
    else:
        with pytest.raises(ValueError, match="is no id of a lesson"):
            check_id(text)


@pytest.mark.parametrize("id", ["", "-a", "_a", "a b", "a/b", "..", "a.b", "ä", "a\n", "٣", "x" * 101])
def test_what_could_be_a_path_or_be_read_in_two_ways_is_no_id(id: str) -> None:
    with pytest.raises(ValueError, match="is no id of a lesson"):
        file_name("exp", id)


@pytest.mark.parametrize(
    "name", ["exp_.yaml", "raw_exp.yaml", "exp_a b.yaml", "exp_a.yml", "Exp_a.yaml", "raw_exp_ä.yaml"]
)
def test_a_name_that_was_meant_to_be_a_lessons_is_noticed(name: str) -> None:
    assert is_misnamed(name)
    assert read_name(name) is None


@pytest.mark.parametrize(
    "name", ["exp_a.yaml", "README.md", "expert.yaml", "exp_a.yaml.bak", ".exp_a.yaml", "notes.yaml"]
)
def test_other_names_are_nobodys_fault(name: str) -> None:
    assert not is_misnamed(name)


def test_an_id_may_have_a_hundred_characters() -> None:
    assert check_id("x" * 100)
