"""The files of a directory that go with a job: all but what is ignored, within limits."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final

from lockstep.api.code import MOST_BYTES, MOST_FILES

IGNORE_FILE: Final = ".lockstepignore"
NEVER: Final = ("__pycache__", ".ipynb_checkpoints")
"""Directories that are left out whether a file says so or not."""
SECRETS: Final = (
    *(".env", ".env.*", "*.pem", "*.key", "id_rsa", "id_ed25519", ".netrc", ".pypirc", ".npmrc"),
    *("kubeconfig*", "credentials", "credentials.*", "*.p12", "*service-account*.json"),
)
"""Names of files that usually hold secrets."""
NO_SECRETS: Final = ("*.example", "*.sample", "*.template")


class BadCode(ValueError):
    """A directory that cannot be sent; *remedy* says what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class File:
    """A file or a link of the directory; *path* is relative to it, *link* is its target."""

    path: str
    size: int = 0
    executable: bool = False
    link: str = ""


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory with its files, by path."""

    root: Path
    files: tuple[File, ...]
    left_out: tuple[str, ...]
    """Links that lead out of the directory."""

    @property
    def secrets(self) -> list[str]:
        """Return the files whose names are those of secrets."""
        return [one.path for one in self.files if _secret(PurePosixPath(one.path).name)]


def read(root: Path) -> Tree:
    """Return what of the directory *root* goes with a job.

    Raises:
        BadCode: when it is no directory, cannot be read, or is too large.
    """
    if not root.is_dir():
        raise BadCode(f"{root} is no directory", "name the directory of your code: --code DIR")
    root = root.resolve()
    paths = sorted(set(_listed(root)))
    # Virtual environments hold paths of this machine.
    homes = tuple(one.removesuffix("pyvenv.cfg") for one in paths if one.endswith("/pyvenv.cfg"))
    found = [_file(root, path) for path in paths if not path.startswith(homes or "/")]
    files = [one for one in found if one is not None]
    inside = [one for one in files if one.link != _OUT]
    _check(root, inside)
    return Tree(root, tuple(inside), tuple(one.path for one in files if one.link == _OUT))


_OUT: Final = "\0"
"""In place of a target: the link leads out of the directory."""


def _file(root: Path, path: str) -> File | None:
    place = root / path
    try:
        about = place.lstat()
        if stat.S_ISLNK(about.st_mode):
            end = place.resolve()
            out = not end.is_relative_to(root) or ".git" in end.relative_to(root).parts
            return File(path, link=_OUT if out else os.path.relpath(end, place.parent))
    except FileNotFoundError:
        return None  # removed, and the index of Git still has it
    except RuntimeError:
        return File(path, link=_OUT)  # links in a circle
    except OSError as error:
        raise _unreadable(path, error) from None
    if not stat.S_ISREG(about.st_mode):
        return None
    return File(path, about.st_size, bool(about.st_mode & 0o100))


def content(root: Path, path: str) -> bytes:
    """Return what is in a file, which must not have become a link.

    Raises:
        BadCode: when it cannot be read.
    """
    try:
        handle = os.open(root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            return file.read(MOST_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str, error: OSError) -> BadCode:
    remedy = f"make it readable, or write {path} into {IGNORE_FILE}"
    return BadCode(f"{path}: {error.strerror}", remedy)


def _check(root: Path, files: Sequence[File]) -> None:
    remedy = (
        f"write what the job does not need into {IGNORE_FILE}, as in .gitignore; keep data on a "
        "volume or in a dataset; --no-code sends nothing"
    )
    total = sum(one.size for one in files)
    if total > MOST_BYTES:
        largest = sorted(files, key=lambda one: -one.size)[:5]
        shown = ", ".join(f"{one.path} ({one.size / 1e6:.1f} MB)" for one in largest)
        raise BadCode(
            f"{root} has {total / 1e6:.1f} MB of files, and code may have at most "
            f"{MOST_BYTES / 1e6:.0f} MB; the largest are {shown}",
            remedy,
        )
    if len(files) > MOST_FILES:
        places = Counter(str(PurePosixPath(one.path).parent) for one in files)
        shown = ", ".join(f"{name} ({n})" for name, n in places.most_common(5))
        raise BadCode(
            f"{root} has {len(files)} files, and code may have at most {MOST_FILES}; most are in "
            f"{shown}",
            remedy,
        )


def _secret(name: str) -> bool:
    matches = any(fnmatchcase(name, one) for one in SECRETS)
    return matches and not any(fnmatchcase(name, one) for one in NO_SECRETS)


def _listed(root: Path) -> Iterable[str]:
    """Return the paths below *root* that no ``.gitignore`` and no ``.lockstepignore`` names."""
    if shutil.which("git") is None:
        return _walked(root)
    ignore = root / IGNORE_FILE
    also = [f"--exclude-from={ignore}"] if ignore.is_file() else []
    others = ("-o", "--exclude-standard", *(f"--exclude={name}/" for name in NEVER), *also)
    if git(root, "rev-parse", "--is-inside-work-tree") == b"true\n":
        ignored = _list(root, "ls-files", "-z", "-c", "-i", *also) if also else set()
        tracked = _list(root, "ls-files", "-z", "-c") - ignored
        return _expanded(root, tracked | _list(root, "ls-files", "-z", *others))
    with tempfile.TemporaryDirectory() as home:
        git(root, "init", "-q", "--bare", home)
        own = (f"--git-dir={home}", f"--work-tree={root}")
        return _expanded(root, _list(root, *own, "ls-files", "-z", *others))


def _list(root: Path, *arguments: str) -> set[str]:
    found = git(root, *arguments)
    if found is None:
        raise BadCode(f"git cannot list the files of {root}", f"`git -C {root} status` says why")
    return {os.fsdecode(one) for one in found.split(b"\0") if one}


def _expanded(root: Path, paths: set[str]) -> Iterator[str]:
    """Yield *paths*, and for a repository within the directory its own files."""
    for path in paths:
        place = root / path
        if place.is_dir() and not place.is_symlink():
            inner = _listed(place) if any(place.iterdir()) else ()
            yield from (f"{path.rstrip('/')}/{one}" for one in inner)
        else:
            yield path


def _walked(root: Path) -> Iterator[str]:
    for directory, folders, names in os.walk(root):
        here = Path(directory)
        if ignoring := {".gitignore", IGNORE_FILE}.intersection(names):
            raise BadCode(
                f"{here / ignoring.pop()} cannot be followed: git is not installed",
                "install git, which tells what is ignored; or remove that file",
            )
        links = [one for one in folders if (here / one).is_symlink()]
        folders[:] = [one for one in folders if one not in (*NEVER, ".git", *links)]
        yield from ((here / one).relative_to(root).as_posix() for one in (*names, *links))


def git(root: Path, *arguments: str) -> bytes | None:
    """Return what Git says of *root*; none where it fails or there is none.

    No program that the repository's own settings name is started.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    command = ["git", "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(command, cwd=root, env=env, capture_output=True, check=False)  # noqa: S603
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
