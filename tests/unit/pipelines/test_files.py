"""What a step's keeper says of the files that it finds."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from lockstep.pipelines.core.results import decode
from lockstep.pipelines.files import encode, fetch, keep, say
from lockstep.pipelines.store import FilesError

Json = dict[str, Any]


def output(place: Path, name: str, kind: str = "Text", **more: Any) -> Json:
    return {"name": name, "kind": kind, "path": str(place / name), **more}


def test_parameters_are_text_or_json(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("7\n")
    (tmp_path / "b").write_text('{"x": [1, null]}')
    orders = {"outputs": [output(tmp_path, "a"), output(tmp_path, "b", "Json")]}
    assert keep(orders) == {"a": "7", "b": {"x": [1, None]}}


@pytest.mark.parametrize("word", [True, False])
def test_booleans_as_python_writes_them_are_booleans(tmp_path: Path, word: bool) -> None:
    (tmp_path / "a").write_text(str(word))
    assert keep({"outputs": [output(tmp_path, "a", "Json")]}) == {"a": word}


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (None, "Text", "output a is missing: there is no"),
        ("{", "Json", "output a is no JSON"),
        (None, "Artifact", "output a is missing: there is no"),
    ],
)
def test_an_output_that_is_no_use_is_told(
    tmp_path: Path, text: str | None, kind: str, words: str
) -> None:
    if text is not None:
        (tmp_path / "a").write_text(text)
    with pytest.raises(FilesError, match=words):
        keep({"outputs": [output(tmp_path, "a", kind, uri="s3://b/a", type="")]})


def test_a_missing_output_has_its_default(tmp_path: Path) -> None:
    outputs = [output(tmp_path, "a", default="none"), output(tmp_path, "b", optional=True)]
    assert keep({"outputs": outputs}) == {"a": "none"}


def test_what_a_kfp_component_says_comes_first(tmp_path: Path) -> None:
    said = {"parameterValues": {"Output": 5, "gone": None}}
    (tmp_path / "executor").write_text(json.dumps(said))
    outputs = [
        output(tmp_path, "executor", "Executor"),
        output(tmp_path, "Output", "Json"),
        output(tmp_path, "gone", "Json"),
    ]
    assert keep({"outputs": outputs}) == {"Output": 5, "gone": None}


def test_an_artefact_at_a_path_of_the_step_is_uploaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[Path, str]] = []

    def upload(path: Path, uri: str) -> tuple[str, int]:
        sent.append((path, uri))
        return "sha256:0", 4

    monkeypatch.setattr("lockstep.pipelines.store.upload", upload)
    own = tmp_path / "made"
    own.write_text("data")
    said = {"artifacts": {"out": {"artifacts": [{"uri": str(own)}]}}}
    (tmp_path / "executor").write_text(json.dumps(said))
    made = output(tmp_path, "out", "Artifact", uri="s3://b/out", type="system.Model")
    found = keep({"outputs": [output(tmp_path, "executor", "Executor"), made]})
    assert sent == [(own, "s3://b/out")]
    assert found["out"]["uri"] == "s3://b/out"


def test_long_results_are_compressed_and_come_back() -> None:
    said = {"outputs": {"words": ["again"] * 3000}}
    assert len(encode(said)) <= 4096 < len(json.dumps(said))
    assert decode(encode(said)) == said


def test_results_too_large_fail_with_that_word(tmp_path: Path) -> None:
    dice = random.Random(1)  # noqa: S311
    said = {"outputs": {"noise": [dice.random() for _ in range(2000)]}}
    say(tmp_path / "message", said)
    assert "too large" in decode((tmp_path / "message").read_text())["error"]


def test_a_bomb_is_not_unpacked() -> None:
    import base64
    import zlib

    bomb = "z:" + base64.b64encode(zlib.compress(b" " * (4 << 20), 9)).decode()
    with pytest.raises(ValueError, match="more than 1048576 bytes"):
        decode(bomb)


def test_text_is_fetched_as_it_is(tmp_path: Path) -> None:
    fetch({"fetch": [{"uri": "raw:", "raw": "hello", "path": str(tmp_path / "deep" / "a")}]})
    assert (tmp_path / "deep" / "a").read_text() == "hello"


@pytest.mark.parametrize(("order", "modes"), [({}, 0o666), ({"mode": 0o755}, 0o755)])
def test_a_file_gets_the_mode_that_is_stated(
    tmp_path: Path, order: dict[str, int], modes: int
) -> None:
    fetch({"fetch": [{"uri": "raw:", "raw": "hello", "path": str(tmp_path / "a"), **order}]})
    assert (tmp_path / "a").stat().st_mode & 0o777 == modes
