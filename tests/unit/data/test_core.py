"""Versions, tiers, order and warm-ups, as tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api.dataset_cache import (
    CacheTier,
    DatasetCache,
    DatasetCacheSpec,
    DatasetCacheStatus,
)
from lockstep.api.meta import ObjectMeta
from lockstep.compat.fluid.objects import Dataset
from lockstep.data.core.dataset_state import Seen
from lockstep.data.core.manifest import Found, build
from lockstep.data.core.order import unchanged
from lockstep.data.core.status import dataset_status
from lockstep.data.core.tiers import BLOCK, Room, choose, in_blocks, refusal

GIB = 1 << 30


def found(key: str, size: int = 1, etag: str = "e", mtime: float = 1.0) -> Found:
    return Found(key, size, etag, mtime)


@pytest.mark.parametrize(
    ("keys", "kept", "told"),
    [
        (["a", "b/c"], ["a", "b/c"], []),
        (["a/../b", "x"], ["x"], ["'..'"]),
        (["a\0b", "x"], ["x"], ["NUL"]),
        (["a\nb", "x"], ["x"], ["line break"]),
        (["a//b", "x"], ["x"], ["empty parts"]),
        (["/a", "x"], ["x"], ["empty parts"]),
        (["a", "a/b"], ["a/b"], ["others lie below it"]),
        (["a", "a/b/c/d"], ["a/b/c/d"], ["others lie below it"]),
        (["n" * 256, "x"], ["x"], ["255 bytes"]),
        (["a\tb", "x"], ["x"], ["control character"]),
        (["w\udcff", "x"], ["x"], ["UTF-8"]),
    ],
)
def test_keys_that_are_no_files_are_told(keys: list[str], kept: list[str], told: list[str]) -> None:
    manifest = build([("", [found(key) for key in keys])])
    assert [one.path for one in manifest.entries] == kept
    assert len(manifest.rejected) == len(told)
    assert all(word in line for word, line in zip(told, manifest.rejected, strict=True))


def test_markers_of_directories_are_no_files() -> None:
    assert build([("", [found("a/", 0), found("a/b")])]).below("/") == build(
        [("", [found("a/b")])]
    ).below("/")


@pytest.mark.parametrize(
    "other",
    [found("a", size=2), found("a", etag="f"), found("a", mtime=2.0), found("b")],
    ids=["size", "etag", "time", "key"],
)
def test_any_change_at_the_source_is_another_version(other: Found) -> None:
    assert build([("", [found("a")])]).version != build([("", [other])]).version


@given(st.lists(st.text(alphabet="ab/.", min_size=1, max_size=6), max_size=12))
def test_a_version_never_holds_a_path_that_climbs_or_shadows(keys: list[str]) -> None:
    manifest = build([("m", [found(key) for key in keys])])
    paths = {one.path for one in manifest.entries}
    assert all(not {"", ".", ".."} & set(path.split("/")) for path in paths)
    assert not any(other.startswith(f"{path}/") for path in paths for other in paths)
    assert len(manifest.entries) + len(manifest.rejected) == sum(
        not (key.endswith("/") and found(key).size == 0) for key in keys
    )


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (found("a"), found("a", mtime=9.0), True),
        (found("a"), found("a", etag="f"), False),
        (found("a", etag=""), found("a", etag=""), True),
        (found("a", etag=""), found("a", etag="", mtime=9.0), False),
        (found("a"), found("a", size=5), False),
    ],
)
def test_only_the_very_same_object_is_kept(old: Found, new: Found, same: bool) -> None:
    kept = unchanged(build([("", [old])]), build([("", [new])]))
    assert bool(kept) is same


@pytest.mark.parametrize(
    ("rooms", "need", "chosen"),
    [
        ([Room(CacheTier(medium="MEM", bytes=GIB), 8 * GIB)], GIB // 2, 0),
        ([Room(CacheTier(medium="MEM", bytes=GIB), 8 * GIB)], GIB, None),
        ([Room(CacheTier(medium="MEM", bytes=GIB, high=1.0), 8 * GIB)], GIB, 0),
        (
            [
                Room(CacheTier(medium="MEM", bytes=GIB), 8 * GIB),
                Room(CacheTier(medium="SSD", bytes=4 * GIB), 8 * GIB),
            ],
            2 * GIB,
            1,
        ),
        ([Room(CacheTier(medium="SSD", bytes=4 * GIB), GIB)], 2 * GIB, None),
        ([Room(CacheTier(medium="SSD", bytes=4 * GIB), GIB, used=2 * GIB)], 2 * GIB, 0),
        ([Room(CacheTier(medium="SSD"), 4 * GIB)], 2 * GIB, 0),
    ],
)
def test_the_first_tier_that_takes_all_is_chosen(
    rooms: list[Room], need: int, chosen: int | None
) -> None:
    assert choose(rooms, need) == chosen
    assert "quota" in refusal(rooms, need)


@given(st.integers(min_value=0, max_value=1 << 50))
def test_room_is_counted_in_whole_blocks(size: int) -> None:
    assert in_blocks(size) % BLOCK == 0
    assert 0 <= in_blocks(size) - size < BLOCK


@pytest.mark.parametrize(
    ("size", "share"), [(0, None), (4 * GIB, "25.0%"), (GIB, "100.0%")], ids=str
)
def test_of_no_files_no_share_is_cached(size: int, share: str | None) -> None:
    meta = ObjectMeta(name="d", namespace="n")
    held = DatasetCacheStatus(files=int(size > 0), bytes=size, cached_bytes=min(size, GIB))
    known = DatasetCacheSpec(node="node-1", dataset="d")
    cache = DatasetCache(metadata=meta, spec=known, status=held)
    seen = Seen(Dataset(meta), caches=[cache])
    told = dataset_status(seen, "Bound", "Ready", "", "2026-11-01T00:00:00Z")
    assert told.cache_states.get("cachedPercentage") == share
