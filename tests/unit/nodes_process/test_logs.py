"""Logs: written by the shim, rotated, and read back in part."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.waiting import eventually

from lockstep.nodes.process.log_server import parse
from lockstep.nodes.process.logs import Query, files_of, last, read, shown, stamp
from lockstep.nodes.process.shim.log import LONGEST_PIECE, Log

STAMP = "2026-01-02T03:04:0{}.000000000Z stdout {} {}\n"


def write(path: Path, *entries: tuple[int, str, str]) -> Path:
    path.write_text("".join(STAMP.format(*entry) for entry in entries))
    return path


async def text(log: Path, **query: object) -> str:
    pieces = [piece async for piece in read(log, Query(**query), lambda: False)]  # type: ignore[arg-type]
    return b"".join(pieces).decode()


SINCE = datetime(2026, 1, 2, 3, 4, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({}, "one\ntwo\nthree four\nfive"),
        ({"tail": 0}, ""),
        ({"tail": 1}, "five"),
        ({"tail": 2}, "three four\nfive"),
        ({"tail": 9}, "one\ntwo\nthree four\nfive"),
        ({"since": SINCE}, "three four\nfive"),
        ({"limit_bytes": 5}, "one\nt"),
        ({"tail": 2, "limit_bytes": 3}, "thr"),
        ({"tail": 1, "timestamps": True}, "2026-01-02T03:04:05.000000000Z five"),
        ({"follow": True, "tail": 1}, "five"),
    ],
)
async def test_part_of_a_log(tmp_path: Path, query: dict[str, object], wanted: str) -> None:
    write(tmp_path / "0.log.1", (1, "F", "one"))
    log = write(
        tmp_path / "0.log",
        (2, "F", "two"),
        (3, "P", "three "),
        (4, "F", "four"),
        (5, "P", "five"),
    )
    assert await text(log, **query) == wanted


async def test_following_goes_on_across_a_rotation(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "0.log"), 10_000, 3)
    log.add("stdout", b"first\n")
    alive = True
    seen: list[bytes] = []

    async def follow() -> None:
        query = Query(follow=True)
        async for piece in read(tmp_path / "0.log", query, lambda: alive):
            seen.append(piece)

    task = asyncio.ensure_future(follow())
    await eventually(lambda: seen, what="the first line")
    log.add("stdout", b"second\n")
    log.rotate()
    log.add("stdout", b"third\nrest")
    log.close()
    alive = False
    await task
    assert b"".join(seen) == b"first\nsecond\nthird\nrest"


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 400))
def test_what_goes_in_comes_out(chunks: list[bytes], limit: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "0.log"
        log = Log(str(path), limit, 1000)
        for chunk in chunks:
            log.add("stdout", chunk)
        log.close()
        lines = last(files_of(path), 10_000)
        assert b"".join(shown(iter(lines), Query())) == b"".join(chunks)


def test_rotation_keeps_so_many_files_of_so_many_bytes(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "0.log"), 1000, 3)
    for number in range(200):
        log.add("stdout", b"line %d\n" % number)
    log.close()
    found = files_of(tmp_path / "0.log")
    assert [one.name for one in found] == ["0.log.2", "0.log.1", "0.log"]
    assert all(one.stat().st_size <= 1000 for one in found)
    assert b"".join(shown(iter(last(found, 1)), Query())) == b"line 199\n"


def test_line_without_an_end_is_written_in_pieces(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "0.log"), 1 << 20, 2)
    log.add("stdout", b"x" * (LONGEST_PIECE + 10))
    assert (tmp_path / "0.log").read_bytes().count(b" P ") == 1
    log.add("stdout", b"y\n")
    log.close()
    lines = last([tmp_path / "0.log"], 1)
    assert b"".join(shown(iter(lines), Query())) == b"x" * (LONGEST_PIECE + 10) + b"y\n"


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("params", "wanted"),
    [
        ({}, Query()),
        ({"follow": "true", "timestamps": "1"}, Query(follow=True, timestamps=True)),
        ({"tailLines": "5", "limitBytes": "7"}, Query(tail=5, limit_bytes=7)),
        ({"tailLines": "-1"}, Query(tail=0)),
        ({"sinceSeconds": "86400"}, Query(since=datetime(2025, 12, 31, tzinfo=UTC))),
        ({"sinceTime": "2026-01-01T00:00:00Z"}, Query(since=NOW)),
    ],
)
def test_query(params: dict[str, str], wanted: Query) -> None:
    assert parse(params, NOW) == wanted


@pytest.mark.parametrize("params", [{"tailLines": "x"}, {"sinceTime": "yesterday"}])
def test_query_that_is_none(params: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"x|yesterday"):
        parse(params, NOW)


def test_moments_compare_as_entries_do() -> None:
    zone = timezone(timedelta(hours=2))
    assert stamp(datetime(2026, 1, 2, 5, 4, 5, 123456, zone)) == b"2026-01-02T03:04:05.123456000Z"


async def test_long_log_comes_whole(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "0.log"), 300_000, 5)
    lines = b"".join(b"line %d\n" % number for number in range(20_000))
    for start in range(0, len(lines), 50_000):
        log.add("stdout", lines[start : start + 50_000])
    log.close()
    assert (await text(tmp_path / "0.log")).encode() == lines
