"""A directory as parts, and back: what changes, what is refused."""

from __future__ import annotations

import io
import random
import stat
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from lockstep.api import code
from lockstep.api.meta import ObjectMeta, OwnerReference
from lockstep.kube.code.parts import compressed, name_of, parts
from lockstep.kube.code.store import UNUSED, unused
from lockstep.kube.code.tree import read
from lockstep.train import unpack
from lockstep.train.unpack import BadParts

MEGABYTE = 1 << 20


def keep(place: Path, found: list[bytes]) -> list[str]:
    """Write parts as a volume shows them."""
    place.mkdir(exist_ok=True)
    for one in found:
        (place / name_of(one)).write_bytes(compressed(one))
    return [name_of(one) for one in found]


def back(tmp_path: Path, found: list[bytes]) -> Path:
    """Unpack parts into a directory of their own."""
    names = keep(tmp_path / "parts", found)
    out = tmp_path / "out"
    out.mkdir()
    unpack.unpack(tmp_path / "parts", out, names)
    return out


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)  # noqa: S311  the same at each run


def fill(root: Path, count: int, size: int) -> None:
    for number in range(count):
        place = root / f"pkg{number % 7}" / f"module{number}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(noise(size, number))


def test_what_is_unpacked_is_what_was_there(tmp_path: Path) -> None:
    root = tmp_path / "root"
    fill(root, 60, 40_000)
    (root / "large").write_bytes(noise(3 * MEGABYTE + 5))
    (root / "empty").write_bytes(b"")
    (root / ("long" * 60)).write_text("x")
    (root / "umlaut-\u00e4").write_text("x")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("pkg0")
    _, found = parts(read(root))
    assert len(found) > 4
    assert all(len(one) <= code.PART for one in found)
    out = back(tmp_path, found)
    there = {one.path: (root / one.path).read_bytes() for one in read(root).files if not one.link}
    assert {one.path: (out / one.path).read_bytes() for one in read(out).files if not one.link} == (
        there
    )
    assert (out / "link").readlink() == Path("pkg0")
    assert stat.S_IMODE((out / "run.sh").stat().st_mode) == 0o777
    assert stat.S_IMODE((out / "empty").stat().st_mode) == 0o666


def test_one_changed_line_changes_one_part(tmp_path: Path) -> None:
    fill(tmp_path, 400, 10_000)
    digest, before = parts(read(tmp_path))
    assert (digest, before) == parts(read(tmp_path))
    place = tmp_path / "pkg3" / "module10.py"
    place.write_bytes(place.read_bytes() + b"one line more\n")
    changed, after = parts(read(tmp_path))
    assert changed != digest
    assert len(after) > 5
    assert len(set(after) - set(before)) == 1


def test_times_and_owners_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("x")
    before = parts(read(tmp_path))
    (tmp_path / "train.py").touch()
    assert parts(read(tmp_path)) == before


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b"") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data)
    return info.tobuf() + data + bytes(-len(data) % 512)


END = bytes(1024)


@pytest.mark.parametrize(
    "archive",
    [
        entry("../outside", data=b"x"),
        entry("a/../../outside", data=b"x"),
        entry("link", tarfile.SYMTYPE, "/etc") + entry("link/outside", data=b"x"),
        entry("link", tarfile.SYMTYPE, "..") + entry("link/outside", data=b"x"),
        entry("hard", tarfile.LNKTYPE, "../parts/secret"),
        entry("device", tarfile.CHRTYPE),
        entry("pipe", tarfile.FIFOTYPE),
        entry("sparse", tarfile.GNUTYPE_SPARSE),
    ],
    ids=["dots", "inner-dots", "link", "link-up", "hard", "device", "pipe", "sparse"],
)
def test_nothing_leads_out_of_the_directory(tmp_path: Path, archive: bytes) -> None:
    with pytest.raises(BadParts):
        back(tmp_path, [archive + END])
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out", "parts"]


def test_an_absolute_name_stays_inside(tmp_path: Path) -> None:
    out = back(tmp_path, [entry(f"{tmp_path}/outside", data=b"x") + END])
    assert not (tmp_path / "outside").exists()
    assert [one.name for one in out.rglob("outside")] == ["outside"]


def _bomb(place: Path) -> list[str]:
    data = bytes(50 * MEGABYTE)
    (place / name_of(data)).write_bytes(compressed(data))
    return [name_of(data)]


def _other(place: Path) -> list[str]:
    (place / name_of(b"mine")).write_bytes(compressed(b"theirs"))
    return [name_of(b"mine")]


def _cut(place: Path) -> list[str]:
    data = noise(5000)
    (place / name_of(data)).write_bytes(compressed(data)[:-500])
    return [name_of(data)]


def _noise(place: Path) -> list[str]:
    (place / name_of(b"x")).write_bytes(b"no gzip file")
    return [name_of(b"x")]


def _repeated(place: Path) -> list[str]:
    return keep(place, [bytes(code.PART)]) * 400


def _many(place: Path) -> list[str]:
    archive = b"".join(entry(f"f{number}") for number in range(20_001)) + END
    cuts = range(0, len(archive), code.PART)
    return keep(place, [archive[start : start + code.PART] for start in cuts])


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (_bomb, "has more than 921600 bytes"),
        (_other, "holds something else"),
        (_cut, "holds something else"),
        (_noise, "is damaged"),
        (_repeated, "hold more than 200000000 bytes"),
        (_many, "is beyond 20000 files"),
    ],
)
def test_damaged_and_swollen_parts_are_refused(
    tmp_path: Path, make: Callable[[Path], list[str]], told: str
) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "out").mkdir()
    names = make(tmp_path / "parts")
    with pytest.raises(BadParts, match=told):
        unpack.unpack(tmp_path / "parts", tmp_path / "out", names)


def test_the_command_tells_why_it_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert unpack.main([str(tmp_path), str(tmp_path), "code-nothing"]) == 1
    assert "the job's code cannot be unpacked: " in capsys.readouterr().err


def test_the_limits_are_those_of_the_kind() -> None:
    assert unpack.PART == code.PART
    assert unpack.MOST_FILES == code.MOST_FILES
    assert unpack.MOST_BYTES >= code.MOST_BYTES + 2048 * code.MOST_FILES


def test_a_part_is_a_gzip_file() -> None:
    packed = compressed(entry("train.py", data=b"x") + END)
    with tarfile.open(fileobj=io.BytesIO(zlib.decompress(packed, 31))) as tar:
        assert tar.getnames() == ["train.py"]


def test_parts_that_no_job_owns_go_after_an_hour() -> None:
    owner = OwnerReference(api_version="v1", kind="TrainingJob", name="a", uid="1")
    old, new = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
    there = [
        ObjectMeta(name="old", creation_timestamp=old),
        ObjectMeta(name="new", creation_timestamp=new),
        ObjectMeta(name="owned", creation_timestamp=old, owner_references=[owner]),
    ]
    now = 1767225600.0 + UNUSED + 1
    assert [one.name for one in unused(there, now)] == ["old"]
