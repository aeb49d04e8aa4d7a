"""Where the driver's libraries are found, on the node and from a container of the node."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.devices.driver import DRIVER_ROOT, HOST, library
from lockstep.devices.sharing import front

NAME = "libcuda.so.1"


def put(place: Path, to: str = "") -> Path:
    """Make a library, or a link *to* one."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if to:
        place.symlink_to(to)
    else:
        place.write_bytes(b"library")
    return place


@pytest.mark.parametrize("link", ["libcuda.so.550", "/usr/lib64/libcuda.so.550", "/opt/cuda"])
def test_links_lead_through_the_nodes_own_root(tmp_path: Path, link: str) -> None:
    host = tmp_path / "host"
    real = put(host / ("opt/cuda" if link == "/opt/cuda" else "usr/lib64/libcuda.so.550"))
    put(host / "usr/lib64" / NAME, link)
    found = library(NAME, {HOST: str(host)})
    assert found is not None
    assert found.here == real
    assert found.on_node == Path("/", real.relative_to(host))


def test_a_driver_below_another_root_is_found(tmp_path: Path) -> None:
    real = put(tmp_path / "run/nvidia/driver/usr/lib64" / NAME)
    told = {HOST: str(tmp_path), DRIVER_ROOT: "/run/nvidia/driver"}
    found = library(NAME, told)
    assert found is not None
    assert (found.here, found.on_node) == (real, Path("/run/nvidia/driver/usr/lib64", NAME))
    assert library(NAME, {HOST: str(tmp_path)}) is None


def test_links_in_a_circle_are_no_library(tmp_path: Path) -> None:
    put(tmp_path / "usr/lib64" / NAME, "other")
    put(tmp_path / "usr/lib64/other", NAME)
    assert library(NAME, {HOST: str(tmp_path)}) is None


def test_a_front_laid_anew_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix, target = tmp_path / "prefix", tmp_path / "node"
    monkeypatch.setattr("sys.prefix", str(prefix))
    built = put(prefix / "lib/lockstep/front" / NAME)
    first = front.lay(target)
    assert front.lay(target) == first
    built.write_bytes(b"newer")
    second = front.lay(target)
    assert first is not None
    assert second is not None
    assert first != second
    assert (first / NAME).read_bytes() == b"library"
    assert (target / front.CURRENT).resolve() == second
    assert {one.name for one in target.iterdir()} == {first.name, second.name, front.CURRENT}
