"""Which directories of a node datasets show: no team reads through the cache what is another's."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from lockstep.api.dataset_cache import CacheMount, CacheTier
from lockstep.data.cache.directories import Directories
from lockstep.data.cache.shelf import Shelf
from lockstep.data.core.manifest import build

pytest.importorskip("obstore", reason="needs the data extra")
from lockstep.data.cache.sources import Source, SourceFailed

CANARY = b"canary"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node: its kubelet with a pod's secret, its cache, and a directory of the users."""
    for name in ("kubelet/pods/u/token", "data/files/u/v/chunk", "token", "nfs/mine/more/a"):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"mine" if name.startswith("nfs") else CANARY)
    return tmp_path


def on_cluster(node: Path, *local: str) -> Directories:
    return Directories.of(node / "data", (), [node / one for one in local], node / "kubelet")


@pytest.mark.parametrize(
    "asked",
    [
        *("", "kubelet", "kubelet/pods/u", "data", "data/files/u", "nfs/../kubelet", "missing"),
        *("nfs/mine", "link"),
    ],
)
@pytest.mark.parametrize("named", [(), ("nfs/other",), ("nfs/m",)])
def test_node_of_a_cluster_shows_named_directories_alone(
    node: Path, asked: str, named: tuple[str, ...]
) -> None:
    (node / "link").symlink_to(node / "kubelet")
    mount = CacheMount(uri=f"local://{node}/{asked}", path="")
    with pytest.raises(SourceFailed, match="an administrator has named"):
        Source(mount, {}, on_cluster(node, *named))


@pytest.mark.parametrize("named", ["", "kubelet", "data", "data/files"])
def test_parts_of_the_node_are_shown_to_no_dataset(node: Path, named: str) -> None:
    with pytest.raises(SourceFailed, match="what datasets may not show"):
        Source(CacheMount(uri=f"local://{node}/{named}", path=""), {}, on_cluster(node, named))


@pytest.mark.parametrize("odd", ["", "new\nline"])
@pytest.mark.parametrize("cluster", [True, False])
async def test_no_link_leads_out_of_a_shown_directory(
    node: Path, odd: str, *, cluster: bool
) -> None:
    hidden = [node / "data", node / "kubelet", node / "token"]
    allowed = on_cluster(node, "nfs") if cluster else Directories(tuple(hidden))
    for index, target in enumerate(hidden):
        for name in (f"l%4{index} é~", f"more/{index}"):
            (node / "nfs/mine" / name).symlink_to(target)
    (node / "nfs/mine/near").symlink_to(node / "nfs/mine/more/a")
    if odd:
        (node / "nfs/mine" / odd).write_bytes(b"")
    source = Source(CacheMount(uri=f"local://{node}/nfs/mine", path=""), {}, allowed)
    listed = [one for one in await source.list() if one.key != odd]
    assert {one.key for one in listed} == {"more/a", "near"}
    entries = build([("", listed)]).entries
    assert [bytes(await source.read(one, 0, one.size)) for one in entries] == [b"mine"] * 2
    # A link that was put in the place of a file later leads to nothing, either.
    (node / "nfs/mine/more/a").unlink()
    (node / "nfs/mine/more/a").symlink_to(node / "token")
    with pytest.raises(SourceFailed, match="not the object any more"):
        await source.read(structs.replace(entries[0], etag="", size=len(CANARY)), 0, len(CANARY))


@pytest.mark.parametrize("path", ["kubelet", "nfs", "data/../kubelet", "data/link"])
def test_caches_of_a_cluster_lie_in_the_caches_directory(node: Path, path: str) -> None:
    (node / "data/link").symlink_to(node / "kubelet")
    shelf = Shelf(node / "data", "u", on_cluster(node, "nfs"))
    with pytest.raises(SourceFailed, match="leave path out"):
        shelf.rooms([CacheTier(medium="SSD", path=f"{node}/{path}")])
    shelf.remove([CacheTier(medium="SSD", path=f"{node}/{path}")])
    assert not list(node.rglob("lockstep-data"))
    assert shelf.rooms([CacheTier(medium="SSD", path=f"{node}/data/fast")])
