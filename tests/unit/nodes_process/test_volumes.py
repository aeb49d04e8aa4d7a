"""Volumes made from objects, and how they lie on disk."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from tests.support.pods import container, make

from lockstep.api.core import ConfigMap, Secret
from lockstep.api.wire import convert
from lockstep.nodes.process import paths
from lockstep.nodes.process.downward import Place
from lockstep.nodes.process.environment import Around, ConfigError, Sources
from lockstep.nodes.process.spec import HostPath, Volume
from lockstep.nodes.process.volume_store import VolumeStore, make_host_path, usage, write_files
from lockstep.nodes.process.volumes import File, files, secret_inside, supported

SOURCES = Sources(
    {"c": convert({"metadata": {}, "data": {"a": "1"}, "binaryData": {"b": "AAE="}}, ConfigMap)},
    {"s": convert({"metadata": {}, "data": {"k": "cHc="}}, Secret)},
    {("vault", 600): "a.b.c"},
)
POD = make(containers=[container("main", resources={"limits": {"cpu": "2"}})])
AROUND = Around(POD, SOURCES, Place("here", "127.0.0.1", "127.1.2.3", {}))


def volume(**source: Any) -> Volume:
    return convert({"name": "v", **source}, Volume)


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (
            {"configMap": {"name": "c"}},
            [File("a", b"1", 0o644), File("b", b"\0\1", 0o644)],
        ),
        (
            {"configMap": {"name": "c", "items": [{"key": "a", "path": "x/y", "mode": 0o600}]}},
            [File("x/y", b"1", 0o600)],
        ),
        ({"configMap": {"name": "none", "optional": True}}, []),
        (
            {"configMap": {"name": "c", "optional": True, "items": [{"key": "z", "path": "z"}]}},
            [],
        ),
        ({"secret": {"secretName": "s", "defaultMode": 0o400}}, [File("k", b"pw", 0o400)]),
        (
            {
                "downwardAPI": {
                    "items": [
                        {"path": "n", "fieldRef": {"fieldPath": "metadata.name"}},
                        {
                            "path": "c",
                            "resourceFieldRef": {"resource": "limits.cpu", "containerName": "main"},
                        },
                    ]
                }
            },
            [File("n", b"p", 0o644), File("c", b"2", 0o644)],
        ),
        (
            {
                "projected": {
                    "defaultMode": 0o440,
                    "sources": [
                        {"configMap": {"name": "c", "items": [{"key": "a", "path": "a"}]}},
                        {"secret": {"name": "s"}},
                    ],
                }
            },
            [File("a", b"1", 0o440), File("k", b"pw", 0o440)],
        ),
        (
            {
                "projected": {
                    "sources": [
                        {
                            "serviceAccountToken": {
                                "path": "token",
                                "audience": "vault",
                                "expirationSeconds": 600,
                            }
                        }
                    ]
                }
            },
            [File("token", b"a.b.c", 0o644)],
        ),
        ({"emptyDir": {}}, None),
        ({"hostPath": {"path": "/x"}}, None),
    ],
)
def test_content(source: dict[str, Any], wanted: list[File] | None) -> None:
    assert files(volume(**source), AROUND) == wanted


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ({"configMap": {"name": "none"}}, ConfigError, 'configmap "none" not found'),
        ({"secret": {"secretName": "none"}}, ConfigError, 'secret "none" not found'),
        (
            {"configMap": {"name": "c", "items": [{"key": "z", "path": "z"}]}},
            ConfigError,
            "non-existent config key: z",
        ),
        ({"projected": {"sources": [{"clusterTrustBundle": {}}]}}, ConfigError, "of a kind"),
        (
            {"configMap": {"name": "c", "items": [{"key": "a", "path": "../../etc/x"}]}},
            paths.UnsafeName,
            "relative path",
        ),
        (
            {
                "downwardAPI": {
                    "items": [{"path": "/x", "fieldRef": {"fieldPath": "metadata.name"}}]
                }
            },
            ConfigError,
            "relative path",
        ),
    ],
)
def test_content_that_cannot_be(
    source: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises((error, paths.UnsafeName), match=message):
        files(volume(**source), AROUND)


def test_kinds_and_secrets_are_told_apart() -> None:
    assert not supported(volume())
    assert supported(volume(emptyDir={}))
    assert secret_inside(volume(secret={"secretName": "s"}))
    assert secret_inside(volume(projected={"sources": [{"secret": {"name": "s"}}]}))
    assert not secret_inside(volume(configMap={"name": "c"}))


def content(root: Path) -> dict[str, tuple[bytes, int]]:
    """Return what a reader sees below *root*: content and mode by path."""
    found = {}
    for top in root.iterdir():
        if top.name.startswith(".."):
            continue
        whole = [top] if top.is_file() else [one for one in top.rglob("*") if one.is_file()]
        for one in whole:
            mode = stat.S_IMODE(one.stat().st_mode)
            found[str(one.relative_to(root))] = (one.read_bytes(), mode)
    return found


def test_files_are_swapped_as_one(tmp_path: Path) -> None:
    write_files(tmp_path, [File("a", b"1", 0o640), File("x/y", b"2", 0o600)], None)
    assert content(tmp_path) == {"a": (b"1", 0o640), "x/y": (b"2", 0o600)}
    held = (tmp_path / "..data").resolve()
    write_files(tmp_path, [File("a", b"1", 0o640), File("x/y", b"2", 0o600)], None)
    assert (tmp_path / "..data").resolve() == held
    write_files(tmp_path, [File("x/z", b"3", 0o644)], None)
    assert content(tmp_path) == {"x/z": (b"3", 0o644)}
    assert not held.exists()


def test_usage_counts_what_is_on_disk(tmp_path: Path) -> None:
    assert usage(tmp_path) == 0
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_bytes(b"x" * 100_000)
    assert 100_000 <= usage(tmp_path) < 200_000


@pytest.mark.parametrize(
    ("kind", "there", "after"),
    [
        ("", "directory", "directory"),
        ("Directory", "directory", "directory"),
        ("DirectoryOrCreate", "nothing", "directory"),
        ("DirectoryOrCreate", "directory", "directory"),
        ("File", "file", "file"),
        ("FileOrCreate", "nothing", "file"),
        ("", "nothing", None),
        ("Directory", "file", None),
        ("Directory", "nothing", None),
        ("File", "directory", None),
        ("DirectoryOrCreate", "file", None),
        ("Socket", "file", None),
        ("CharDevice", "directory", None),
        ("Other", "file", None),
    ],
)
def test_host_path(tmp_path: Path, kind: str, there: str, after: str | None) -> None:
    place = tmp_path / "x"
    if there == "directory":
        place.mkdir()
    elif there == "file":
        place.touch()
    wanted = HostPath(path=str(place), type=kind)
    if after is None:
        with pytest.raises(ConfigError):
            make_host_path(wanted)
    else:
        make_host_path(wanted)
        assert place.is_dir() == (after == "directory")
        assert place.is_file() == (after == "file")


@pytest.mark.parametrize(
    ("limit", "medium", "over"),
    [("1Mi", "", False), ("50Ki", "", True), ("50Ki", "Memory", False), (None, "", False)],
)
def test_size_limit_of_a_directory(
    tmp_path: Path, limit: str | None, medium: str, over: bool
) -> None:
    empty = {"medium": medium, **({"sizeLimit": limit} if limit else {})}
    pod = make(volumes=[{"name": "v", "emptyDir": empty}])
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "f").write_bytes(b"x" * 100_000)
    found = VolumeStore(tmp_path).oversized(pod)
    assert (found == f'Usage of EmptyDir volume "v" exceeds the limit "{limit}".') == over
