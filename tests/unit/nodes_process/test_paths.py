"""Names from pods that become paths, and addresses."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.nodes.process import addresses, paths

LOOPBACK = IPv4Network(addresses.LOOPBACK)


@pytest.mark.parametrize("text", ["a", "a/b", "./a", "a//b/", "..a", "a/.."[:-1]])
def test_relative_paths_that_stay_inside(text: str) -> None:
    assert not paths.relative(text).startswith("/")


@pytest.mark.parametrize("text", ["", "/", "/a", "..", "a/../b", "../a", "a/..", "a\0b"])
def test_relative_paths_that_do_not(text: str) -> None:
    with pytest.raises(paths.UnsafeName):
        paths.relative(text)


@pytest.mark.parametrize(
    ("text", "wanted"), [("/a", "/a"), ("/a/./b//c/", "/a/b/c"), ("/..a", "/..a")]
)
def test_mount_path(text: str, wanted: str) -> None:
    assert paths.absolute(text) == wanted


@pytest.mark.parametrize("text", ["", "a", "/", "//", "/a/../b", "/.."])
def test_mount_path_that_is_none(text: str) -> None:
    with pytest.raises(paths.UnsafeName):
        paths.absolute(text)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (paths.label, ["a", "a-1"], ["", "A", "-a", "a.b", "a/b", "..", "a" * 64]),
        (paths.pod_name, ["a.b-c", "a"], ["", "a..b", ".", "../x", "a/b", "A"]),
        (paths.uid, ["1bbe-Ab_c"], ["", "../x", "a/b", "a b"]),
    ],
)
def test_names(check: object, good: list[str], bad: list[str]) -> None:
    assert callable(check)
    assert [check(text) for text in good] == good
    for text in bad:
        with pytest.raises(paths.UnsafeName):
            check(text)


@settings(deadline=None)
@given(st.text(alphabet="ab./\0", max_size=12))
def test_nothing_leads_out_of_its_volume(text: str) -> None:
    root = Path("/volumes/v")
    try:
        found = paths.inside(root, text)
    except paths.UnsafeName:
        return
    assert found.is_relative_to(root)


def test_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "v"
    root.mkdir()
    (root / "in").mkdir()
    (root / "out").symlink_to("/etc")
    (root / "here").symlink_to("in")
    assert paths.inside(root, "here/x") == root / "in" / "x"
    with pytest.raises(paths.UnsafeName, match="leads out"):
        paths.inside(root, "out/passwd")


@settings(deadline=None)
@given(st.lists(st.uuids(), unique=True, min_size=1, max_size=50))
def test_addresses_are_own_stable_and_off_the_hosts_range(uids: list[object]) -> None:
    taken: set[str] = set()
    for uid in map(str, uids):
        address = addresses.choose(uid, taken, LOOPBACK)
        assert address not in taken
        assert addresses.choose(uid, taken, LOOPBACK) == address
        first, second, _, last = map(int, address.split("."))
        assert (first, second > 0, 0 < last < 255) == (127, True, True)
        taken.add(address)


def test_taken_address_is_passed_over() -> None:
    first = addresses.choose("uid", (), LOOPBACK)
    second = addresses.choose("uid", {first}, LOOPBACK)
    assert second not in (first, addresses.choose("uid", {first, second}, LOOPBACK))


def test_pods_of_a_subnet_get_addresses_until_all_are_taken() -> None:
    pods, taken = IPv4Network("10.77.1.0/29"), set[str]()
    for number in range(7):
        taken.add(addresses.choose(str(number), taken, pods))
    assert taken == {f"10.77.1.{last}" for last in range(1, 8)}
    with pytest.raises(addresses.NoAddress, match=r"10\.77\.1\.0/29"):
        addresses.choose("more", taken, pods)
