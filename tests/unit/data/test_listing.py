"""Keys that no path can stand for, beside good ones: the store's listing gives all of them."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from tests.support.range_store import RangeStore

from lockstep.api.dataset_cache import CacheMount
from lockstep.data.cache.listing import ListingFailed, s3_keys
from lockstep.data.core.manifest import build

pytest.importorskip("obstore", reason="needs the data extra")

GOOD = {"plain": b"1", "deep/er/a b+%41é": b"22", "both/x": b"333"}
ODD = ("x/../../etc", "a//b", "/lead", "both", "n" * 256, "line\nbreak", "tab\tkey", "w\udcff")


async def read(mount: CacheMount) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files that a mount serves, and the keys that it names as rejected."""
    from lockstep.data.cache.sources import Source

    source = Source(mount, {})
    manifest = build([("", await source.list())])
    files = {one.path: bytes(await source.read(one, 0, one.size)) for one in manifest.entries}
    return files, manifest.rejected


def shown(told: str) -> str:
    """Return the key, or its first characters, that a rejection names."""
    return str(ast.literal_eval(told.split(": ", maxsplit=1)[0].split("...", maxsplit=1)[0]))


async def test_odd_keys_of_a_bucket_are_named_and_skipped() -> None:
    store = RangeStore({**GOOD, **dict.fromkeys(ODD, b"odd")})
    mount = CacheMount(uri="s3://bucket", path="", options={"endpoint": store.url})
    files, rejected = await read(mount)
    store.close()
    assert files == GOOD
    assert {key[:100] for key in ODD} == {shown(one) for one in rejected}


def test_an_endpoint_names_no_file_of_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    (tmp_path / "bucket").write_text("<a>secret</a>")
    with pytest.raises(ListingFailed, match="unknown url type"):
        s3_keys("s3://bucket", {"endpoint": f"file://{tmp_path}"}, {})


async def test_odd_names_of_a_directory_are_named_and_skipped(tmp_path: Path) -> None:
    odd = ("line\nbreak", "tab\tkey", "w\udcff")
    for key, data in {**GOOD, **dict.fromkeys(odd, b"odd")}.items():
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        Path(os.fsdecode(os.fsencode(tmp_path / key))).write_bytes(data)
    (tmp_path / "loop").symlink_to(tmp_path)
    files, rejected = await read(CacheMount(uri=f"local://{tmp_path}", path=""))
    assert files == GOOD
    assert [shown(one) for one in sorted(rejected)] == sorted(odd)
