"""Images by table: what a process node runs for a container that names an image and no command.

A table is a YAML list, tried from its first entry on::

    - image: "kserve/sklearnserver*"         # shell pattern; a registry before it does not matter
      command: ["{python}", "-P", "-m", "lockstep.serve.server", "--framework", "sklearn"]
      python: /opt/sklearn                   # a virtual environment; the node's own when left out
      user: nobody                           # name or number; the node's own when left out
      env: {OMP_NUM_THREADS: "1"}
      mounts: {/argosay: /opt/argosay}       # what the image has there, and where it is here
"""

from __future__ import annotations

import pwd
import stat
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OWN_PYTHON: Final = "/opt/lockstep/python"
"""Where a container finds the node's Python when its user may not reach the node's own place."""
Mounts = tuple[tuple[str, str], ...]
OWN_CODE: Final = "/opt/lockstep/code"


class BadTable(ValueError):
    """A table of images that cannot be used; the message says which entry and why."""


class Image(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of a table."""

    image: str
    command: list[str]
    python: str = ""
    user: str | int | None = None
    env: dict[str, str] = {}
    mounts: dict[str, str] = {}

    @property
    def uid(self) -> int | None:
        """Return the number of the user; none where the node's own stays."""
        if self.user is None or isinstance(self.user, int):
            return self.user
        return pwd.getpwnam(self.user).pw_uid


@dataclass(frozen=True, slots=True)
class Entry:
    """What an image stands for on this machine."""

    command: list[str]
    uid: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: Mounts = ()
    """Directories that its user could not reach otherwise, and where they are put."""
    furnished: bool = False
    """Whether the table says what files or programs it has: they are there for any command."""


@dataclass(frozen=True, slots=True)
class Images:
    """A table of images."""

    table: tuple[Image, ...] = ()

    def find(self, image: str) -> Entry | None:
        """Return what to run for *image*; none when no entry is for it."""
        for one in self.table:
            if _matches(image, one.image):
                return _entry(one)
        return None


def load(path: Path | None) -> Images:
    """Return the table in the file *path* with the shipped one below it.

    Raises:
        BadTable: when it cannot be read or an entry makes no sense.
    """
    own = _read(path.read_bytes(), str(path)) if path is not None else ()
    shipped = resources.files("lockstep.nodes.process").joinpath("images.yaml").read_bytes()
    return Images((*own, *_read(shipped, "the shipped table")))


def _read(text: bytes, where: str) -> tuple[Image, ...]:
    import yaml

    try:
        found = msgspec.convert(yaml.safe_load(text) or [], tuple[Image, ...])
        for one in found:
            if not one.image or not one.command:
                raise BadTable(f"{where}: entry {one.image!r} needs an image and a command")
            _ = one.uid
    except (yaml.YAMLError, msgspec.ValidationError, KeyError) as error:
        raise BadTable(f"{where}: {error}") from error
    return found


def _matches(image: str, pattern: str) -> bool:
    """Tell whether *pattern* is for *image*, with any registry before its name."""
    parts = image.split("/")
    return any(fnmatchcase("/".join(parts[start:]), pattern) for start in range(len(parts)))


def _entry(one: Image) -> Entry:
    if one.python:
        first = {"PATH": f"{one.python}/bin:{SYSTEM_PATH}"}
        own: tuple[str, dict[str, str], Mounts] = (f"{one.python}/bin/python", first, ())
    else:
        own = _own_python(one.uid)
    python, env, mounts = own
    command = [part.replace("{python}", python) for part in one.command]
    theirs = tuple((here, place) for place, here in one.mounts.items())
    furnished = bool(theirs or one.python or "PATH" in one.env)
    return Entry(command, one.uid, {**env, **one.env}, (*mounts, *theirs), furnished)


def _own_python(uid: int | None) -> tuple[str, dict[str, str], Mounts]:
    """Return how the user *uid* runs the node's Python: command, variables and mounts."""
    if uid in (None, 0) or reachable(Path(sys.executable).resolve(), Path(sys.prefix)):
        return sys.executable, {}, ()
    code = [sysconfig.get_path("purelib"), str(Path(__file__).parents[3])]
    mounts = [(sys.base_prefix, OWN_PYTHON)]
    places = []
    for number, place in enumerate(dict.fromkeys(code)):
        if reachable(Path(place)):
            places.append(place)
        else:
            mounts.append((place, f"{OWN_CODE}/{number}"))
            places.append(f"{OWN_CODE}/{number}")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    command = f"{OWN_PYTHON}/bin/{version}"
    variables = {"PYTHONPATH": ":".join(places)}
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        # The library's place that the program names is the one that its user cannot reach.
        variables["LD_LIBRARY_PATH"] = f"{OWN_PYTHON}/lib"
    return command, variables, tuple(mounts)


def reachable(*paths: Path) -> bool:
    """Tell whether every user may go through all directories that lead to *paths*."""
    return all(parent.stat().st_mode & stat.S_IXOTH for path in paths for parent in path.parents)
