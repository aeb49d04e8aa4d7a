"""The code that a job runs: parts of a directory, kept in ConfigMaps, and what it came from."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from lockstep.api.wire import Wire

CODE_LABEL: Final = "lockstep.dev/code"
"""On the ConfigMaps that hold a part of a directory, or the list of its packages."""
KEY: Final = "part"
"""The key of a ConfigMap under which it holds its part."""
MOST_BYTES: Final = 100_000_000
MOST_FILES: Final = 20_000
PART: Final = 900 << 10
"""Bytes of the largest part before it is compressed; a ConfigMap holds 1 MiB."""
DIRECTORY: Final = "/lockstep/code"

Part = Annotated[str, Meta(pattern="^code-[0-9a-f]{40}$")]


class Code(Wire, frozen=True):
    """The directory that a job was submitted from, and its environment."""

    digest: Annotated[str, Meta(max_length=71)] = ""
    """Digest of its files: paths, modes and contents."""
    parts: Annotated[list[Part], Meta(max_length=400)] = []
    """ConfigMaps of the job's namespace that hold it, in order; none where the job runs in the
    directory itself."""
    directory: Annotated[str, Meta(pattern="^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$")] = DIRECTORY
    """Where the main container of each pod finds it."""
    files: Annotated[int, Meta(ge=0)] = 0
    """How many files it has."""
    size: Annotated[int, Meta(ge=0)] = 0
    """Bytes of its files."""
    commit: Annotated[str, Meta(max_length=64)] = ""
    """Commit of its Git repository, if it is in one."""
    changes: Annotated[str, Meta(max_length=71)] = ""
    """Digest of `git diff HEAD`; empty without changes."""
    environment: Annotated[str, Meta(max_length=253)] = ""
    """Its lock file, else the active virtual environment."""
    packages: Annotated[str, Meta(max_length=45)] = ""
    """ConfigMap with the packages of that."""
