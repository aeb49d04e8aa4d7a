"""The page: its libraries are the reviewed ones, its texts complete, and nothing is inline."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from tools.console.vendor import PACKAGES, TESTS_ALONE, Package

import lockstep.console
from lockstep.console.views.kinds import ALL

PAGE = Path(lockstep.console.__file__).parent / "page"
VENDOR = PAGE / "vendor"
AXE = Path(__file__).parents[2] / "support/axe"


@pytest.mark.parametrize(("where", "packages"), [(VENDOR, PACKAGES), (AXE, TESTS_ALONE)])
def test_vendored_files_are_those_that_are_listed(
    where: Path, packages: tuple[Package, ...]
) -> None:
    listed = json.loads((where / "versions.json").read_text())
    hashes = {name: digest for one in listed for name, digest in one["files"].items()}
    there = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in where.iterdir()}
    there.pop("versions.json")
    assert there == hashes
    assert [(one["package"], one["version"]) for one in listed] == [
        (package.name, package.version) for package in packages
    ]


def test_both_languages_have_the_same_texts() -> None:
    english, chinese = (json.loads((PAGE / f"texts/{n}.json").read_text()) for n in ("en", "zh"))
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        places = re.compile(r"\{\w+\}")
        assert sorted(places.findall(text)) == sorted(places.findall(chinese[key])), key


def test_every_text_that_the_page_asks_for_is_there() -> None:
    english = json.loads((PAGE / "texts/en.json").read_text())
    scripts = [path for path in PAGE.rglob("*.js") if path.parent != VENDOR]
    asked = {key for path in scripts for key in re.findall(r"\bt\('([\w.]+)'", path.read_text())}
    assert asked
    assert asked <= english.keys()


def test_every_kind_and_its_columns_have_texts() -> None:
    english = json.loads((PAGE / "texts/en.json").read_text())
    wanted = {f"{part}.{kind.word}" for kind in ALL for part in ("nav", "about", "empty")}
    wanted |= {f"column.{column.name}" for kind in ALL for column in kind.columns}
    assert wanted <= english.keys()


def test_scripts_fit_into_150_kb() -> None:
    import gzip

    assert sum(len(gzip.compress(p.read_bytes())) for p in PAGE.rglob("*.js")) < 150_000


def test_nothing_is_inline_or_from_elsewhere() -> None:
    page = (PAGE / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"\bstyle=|\bon\w+=|https?://", page) == []
