"""A folder that somebody chooses: within the base, or refused."""

from pathlib import Path

import pytest

from callboard.experience.folder import resolve_folder
from callboard.runtime.errors import InvalidFile


@pytest.mark.parametrize("sub_path", ["sales", "sales/2025", "./sales", "a b", "…"])
def test_a_sub_path_lies_within_the_base_and_need_not_be_there(tmp_path: Path, sub_path: str) -> None:
    assert resolve_folder(tmp_path, sub_path) == tmp_path.resolve() / sub_path


@pytest.mark.parametrize("sub_path", [None, "", "."])
def test_without_a_sub_path_it_is_the_base(tmp_path: Path, sub_path: str | None) -> None:
    assert resolve_folder(tmp_path, sub_path) == tmp_path.resolve()


@pytest.mark.parametrize(
    "sub_path",
    ["..", "../x", "a/../../x", "a/..", "/etc", "//host/x", "C:\\x", "c:x", "..\\x", "a\\..\\x", "\\x", "a\0b"],
)
def test_what_leads_up_or_away_is_refused(tmp_path: Path, sub_path: str) -> None:
    with pytest.raises(InvalidFile, match="do: name a folder that lies within it"):
        resolve_folder(tmp_path, sub_path)


def test_a_link_may_lead_about_in_the_base_and_not_out_of_it(tmp_path: Path) -> None:
    base = tmp_path / "base"
    (base / "real").mkdir(parents=True)
    (base / "in").symlink_to("real")
    (base / "out").symlink_to(tmp_path)
    assert resolve_folder(base, "in") == (base / "real").resolve()
    with pytest.raises(InvalidFile, match="a link that leads out"):
        resolve_folder(base, "out")


def test_links_in_a_ring_are_refused_or_lead_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    try:
        assert resolve_folder(tmp_path, "a").is_relative_to(tmp_path.resolve())
    except InvalidFile as error:
        assert "cannot be resolved" in error.message


def test_a_base_that_is_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real" / "sales").mkdir(parents=True)
    (tmp_path / "base").symlink_to("real")
    assert resolve_folder(tmp_path / "base", "sales") == (tmp_path / "real" / "sales").resolve()
