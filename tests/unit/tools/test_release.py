"""`make release`: it numbers, collects the news, commits and tags; or it refuses and says why."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.release import __main__ as release

from lockstep import __version__

ROOT = Path(__file__).parents[3]
PROJECT = '[tool.towncrier]\ndirectory = "newsfragments"\nfilename = "CHANGELOG.md"\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository of a small project at version 0.2.0 with one piece of news."""
    (tmp_path / "newsfragments").mkdir()
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n<!-- towncrier release notes start -->\n"
    )
    (tmp_path / "newsfragments" / ".gitignore").write_text("")
    (tmp_path / "newsfragments" / "+gangs.feature.md").write_text("Gangs start whole.\n")
    (tmp_path / "code.py").write_text('__version__ = "0.2.0"\nADDRESS = "10.2.0.0"\n')
    release.run(tmp_path, "git", "init", "--initial-branch", "main")
    release.run(tmp_path, "git", "config", "user.name", "Test")
    release.run(tmp_path, "git", "config", "user.email", "test@example.com")
    release.run(tmp_path, "git", "add", ".")
    release.run(tmp_path, "git", "commit", "--message", "first")
    return tmp_path


def test_a_release_numbers_collects_commits_and_tags(tree: Path) -> None:
    assert release.refusal(tree, "0.2.0", "0.3.0") is None
    release.number(tree, "0.2.0", "0.3.0", ["code.py"])
    release.collect(tree, "0.3.0")
    release.record(tree, "0.3.0")
    assert (tree / "code.py").read_text() == '__version__ = "0.3.0"\nADDRESS = "10.2.0.0"\n'
    changelog = (tree / "CHANGELOG.md").read_text()
    assert "0.3.0" in changelog
    assert "- Gangs start whole." in changelog
    assert not list((tree / "newsfragments").glob("*.md"))
    assert release.run(tree, "git", "tag", "--points-at", "HEAD") == "v0.3.0\n"
    assert release.run(tree, "git", "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ("next", "'next' is no version like 0.3.0"),
        ("0.2.0", "0.2.0 is not above 0.2.0"),
        ("0.1.9", "0.1.9 is not above 0.2.0"),
        ("0.4.0", "the tag v0.4.0 exists"),
    ],
)
def test_a_wrong_version_is_refused(tree: Path, new: str, words: str) -> None:
    release.run(tree, "git", "tag", "v0.4.0")
    assert words in str(release.refusal(tree, "0.2.0", new))


def test_uncommitted_files_and_missing_news_are_refused(tree: Path) -> None:
    (tree / "code.py").write_text("")
    assert "1 files are not committed,  M code.py" in str(release.refusal(tree, "0.2.0", "0.3.0"))
    release.run(tree, "git", "rm", "-q", "--force", "newsfragments/+gangs.feature.md", "code.py")
    release.run(tree, "git", "commit", "--message", "second")
    assert "newsfragments/ is empty" in str(release.refusal(tree, "0.2.0", "0.3.0"))


@pytest.mark.parametrize("place", release.PLACES)
def test_every_place_states_the_present_version(place: str) -> None:
    assert __version__ in (ROOT / place).read_text()
