"""``python -m lockstep.train.unpack PARTS DIRECTORY NAME...``: a job's code, out of its parts.

An init container runs it; the standard library is all it needs. The parts are files below
``PARTS``, named by their digests. In order they are one tar archive.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PART: Final = 900 << 10
MOST_BYTES: Final = 200_000_000
MOST_FILES: Final = 20_000


class BadParts(Exception):
    """Parts that are not what they are named after, or that may not be unpacked."""


def part(place: Path, name: str) -> bytes:
    """Return the part *name*, decompressed.

    Raises:
        BadParts: when it is larger than a part may be, or not what it is named after.
    """
    unpacker = zlib.decompressobj(31)
    try:
        data = unpacker.decompress((place / name).read_bytes(), PART + 1)
    except zlib.error as error:
        raise BadParts(f"{name} is damaged: {error}") from None
    if len(data) > PART:
        raise BadParts(f"{name} has more than {PART} bytes")
    if name != f"code-{hashlib.sha256(data).hexdigest()[:40]}":
        raise BadParts(f"{name} holds something else than its name says")
    return data


def unpack(place: Path, directory: Path, names: Sequence[str]) -> int:
    """Write the files of the parts *names* below *directory*; return how many there are.

    Raises:
        BadParts: when a part is damaged, or an entry leads out of *directory*, is neither file nor
            link, or goes beyond the limits.
        OSError: when they cannot be read or written.
    """
    files = size = 0
    with tempfile.TemporaryFile(dir=directory) as archive:
        for name in names:
            archive.write(part(place, name))
            if archive.tell() > MOST_BYTES:
                raise BadParts(f"they hold more than {MOST_BYTES} bytes")
        archive.seek(0)
        try:
            with tarfile.open(fileobj=archive, mode="r:") as tar:
                for entry in tar:
                    files, size = files + 1, size + entry.size
                    if files > MOST_FILES or size > MOST_BYTES:
                        raise BadParts(f"{entry.name} is beyond {MOST_FILES} files")
                    _extract(tar, entry, directory)
        except tarfile.TarError as error:
            raise BadParts(str(error)) from None
    return files


def _extract(tar: tarfile.TarFile, entry: tarfile.TarInfo, directory: Path) -> None:
    if not (entry.isreg() or entry.issym()) or entry.issparse():
        raise BadParts(f"{entry.name} is neither a file nor a link")
    inside = tarfile.data_filter(entry, str(directory))
    # The main container may run as any user.
    mode = 0o777 if entry.mode & 0o100 else 0o666
    tar.extract(inside.replace(mode=mode, deep=False), directory, filter="fully_trusted")


def main(arguments: Sequence[str]) -> int:
    """Unpack; return the exit code."""
    place, directory, *names = arguments
    os.umask(0)
    try:
        unpack(Path(place), Path(directory), names)
    except (BadParts, OSError) as error:
        print(f"the job's code cannot be unpacked: {error}; submit it again", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
