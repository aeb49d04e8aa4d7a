"""Where checkpoints lie: a directory, or a prefix of an object store such as ``s3://bucket/prefix``.

Object stores are reached by obstore in the ranks' own Python; how and as whom is in the variables
that it reads (``AWS_ACCESS_KEY_ID``, ``AWS_ENDPOINT_URL`` and the like). The launcher has it asked:
``python -m lockstep.train.storage URL`` prints what a job's index holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Union

_TRIES = 20
"""Times that a change is made again because others change the same at once."""


class Objects:
    """A key of an object store, as far as checkpoints use paths."""

    def __init__(self, root: str, key: str) -> None:
        self.root, self.key = root, key

    def __str__(self) -> str:
        return f"{self.root}/{self.key}"

    def __truediv__(self, name: str) -> Objects:
        return Objects(self.root, f"{self.key}/{name}")

    @property
    def name(self) -> str:
        """The last part."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> Objects:
        """What it lies in."""
        return Objects(self.root, self.key.rpartition("/")[0])

    @property
    def store(self) -> Any:
        """The bucket."""
        return _store(self.root)


Place = Union[Path, Objects]


def is_remote(text: str) -> bool:
    """Say whether *text* names an object store."""
    return "://" in text


def at(text: str) -> Place:
    """Return the directory or the prefix that *text* names."""
    if not is_remote(text):
        return Path(text)
    scheme, _, rest = text.partition("://")
    bucket, _, key = rest.partition("/")
    return Objects(f"{scheme}://{bucket}", key.strip("/"))


@lru_cache
def _store(root: str) -> Any:
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise OSError(f"{root}: object stores need obstore beside torch: {error}") from error
    options: Any = {}
    if os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options["allow_http"] = True
    with as_files(root):
        return from_url(root, client_options=options)


@contextlib.contextmanager
def as_files(what: object) -> Iterator[None]:
    """Raise what a store says as files would."""
    from obstore.exceptions import BaseError

    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(2, "there is nothing", str(what)) from error
    except BaseError as error:
        raise OSError(f"{what}: {(str(error).strip() or 'no answer').splitlines()[0]}") from error


def read(place: Place) -> bytes:
    """Return all bytes.

    Raises:
        OSError: when there is nothing, or it cannot be read.
    """
    if isinstance(place, Path):
        return place.read_bytes()
    import obstore

    store = place.store
    with as_files(place):
        return bytes(obstore.get(store, place.key).bytes())


def read_range(place: Place, start: int, size: int) -> bytes:
    """Return *size* bytes from *start* on, or those that there are.

    Raises:
        OSError: when there is nothing, or it cannot be read.
    """
    if isinstance(place, Path):
        with place.open("rb") as file:
            file.seek(start)
            return file.read(size)
    import obstore

    store = place.store
    with as_files(place):
        return bytes(obstore.get_range(store, place.key, start=start, length=size)) if size else b""


def put(place: Place, data: bytes, *, new: bool = False) -> None:
    """Put *data* there, all of it or nothing; *new*: where something is already that stays.

    Raises:
        OSError: when it cannot be written.
    """
    if isinstance(place, Path):
        _put_file(place, data)
        return
    import obstore
    from obstore.exceptions import AlreadyExistsError

    store = place.store
    with as_files(place), contextlib.suppress(AlreadyExistsError):
        obstore.put(store, place.key, data, mode="create" if new else "overwrite")


def _put_file(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def change(place: Place, make: Callable[[bytes | None], bytes]) -> None:
    """Replace what is there by what *make* makes of it; of several at once none is lost.

    Raises:
        OSError: when it cannot be written.
    """
    if isinstance(place, Path):
        with _alone(place.parent):
            _put_file(place, make(place.read_bytes() if place.is_file() else None))
        return
    for _ in range(_TRIES):
        if _swapped(place, make):
            return
    raise OSError(f"{place}: others change it all the time")


def _swapped(place: Objects, make: Callable[[bytes | None], bytes]) -> bool:
    """Replace what is there if it is still the same at the end; say whether it was."""
    import obstore
    from obstore.exceptions import AlreadyExistsError, PreconditionError

    store = place.store
    mode: Any = "create"
    known = None
    with as_files(place), contextlib.suppress(FileNotFoundError):
        found = obstore.get(store, place.key)
        known, mode = bytes(found.bytes()), {"e_tag": found.meta["e_tag"]}
    with as_files(place):
        try:
            obstore.put(store, place.key, make(known), mode=mode)
        except (AlreadyExistsError, PreconditionError):
            return False
    return True


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    # Where the volume knows no locks the worst is a checkpoint that the index forgets.
    fd = os.open(directory / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def remove(place: Place) -> None:
    """Remove all that lies there, as far as that can be done."""
    if isinstance(place, Path):
        shutil.rmtree(place, ignore_errors=True)
        return
    import obstore

    store = place.store
    with contextlib.suppress(OSError), as_files(place):
        for page in obstore.list(store, place.key + "/"):
            obstore.delete(store, [one["path"] for one in page])


if __name__ == "__main__":
    try:
        sys.stdout.write(read(at(sys.argv[1]) / "index.json").decode())
    except FileNotFoundError:
        sys.stdout.write("[]")
    except OSError as error:
        sys.exit(str(error))
