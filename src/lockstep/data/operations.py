"""``python -m lockstep.data.operations``: what DataMigrates and DataBackups run in their pods."""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import obstore
from obstore.exceptions import BaseError

from lockstep.api.dataset_cache import CacheMount
from lockstep.data.cache.sources import SourceFailed, open_store

PIECE: Final = 8 << 20
"""Bytes of an object that are in memory at once."""
TELL_EVERY: Final = 100


def arguments(argv: list[str]) -> argparse.Namespace:
    """Return what is asked for."""
    parser = argparse.ArgumentParser(prog="lockstep.data.operations", allow_abbrev=False)
    what = parser.add_subparsers(dest="what", required=True)
    migrate = what.add_parser("migrate", help="copy objects that the target lacks")
    for name in ("from", "to"):
        migrate.add_argument(f"--{name}", dest=f"{name}_", required=True)
        migrate.add_argument(f"--{name}-option", action="append", default=[])
    migrate.add_argument("--at-once", type=int, default=8)
    backup = what.add_parser("backup", help="write down what a directory holds")
    backup.add_argument("--from", dest="from_", type=Path, required=True)
    backup.add_argument("--to", dest="to_", type=Path, required=True)
    return parser.parse_args(argv)


def end(uri: str, options: list[str], environment: Mapping[str, str], prefix: str) -> Any:
    """Return the store at *uri*; Secrets stand in variables that begin with *prefix*.

    Raises:
        SourceFailed: when it cannot be opened.
    """
    plain = dict(one.partition("=")[::2] for one in options)
    secrets = {
        name.removeprefix(prefix).lower(): value
        for name, value in environment.items()
        if name.startswith(prefix)
    }
    return open_store(CacheMount(uri=uri, options=plain), secrets)


async def migrate(source: Any, target: Any, at_once: int) -> tuple[int, int, int]:
    """Copy what *target* lacks; return how many objects, their bytes, and how many were there.

    An object of the same size that is not older is there already: a copy that was cut off goes on.
    """
    there = {}
    async for batch in obstore.list(target, chunk_size=1000):
        there.update({one["path"]: (one["size"], one["last_modified"]) for one in batch})
    slots = asyncio.Semaphore(at_once)
    copied = size = kept = 0

    async def copy(one: Any) -> None:
        nonlocal copied, size
        async with slots:
            found = await obstore.get_async(source, one["path"])
            await obstore.put_async(target, one["path"], found.stream(min_chunk_size=PIECE))
        copied, size = copied + 1, size + one["size"]
        if copied % TELL_EVERY == 0:
            print(f"{copied} objects, {size} bytes", flush=True)

    async for batch in obstore.list(source, chunk_size=1000):
        due = []
        for one in batch:
            has = there.get(one["path"])
            if has is not None and has[0] == one["size"] and has[1] >= one["last_modified"]:
                kept += 1
            else:
                due.append(copy(one))
        await asyncio.gather(*due)
    return copied, size, kept


def backup(place: Path, target: Path) -> int:
    """Write path, size and time of each file below *place*, a line each; return how many."""
    draft = target.with_name(f".{target.name}")
    count = 0
    with gzip.open(draft, "wt") as file:
        for directory, names, files in os.walk(place):
            names.sort()
            for name in sorted(files):
                one = Path(directory, name)
                seen = one.stat()
                path = str(one.relative_to(place))
                line = {"path": path, "size": seen.st_size, "mtime": seen.st_mtime}
                file.write(json.dumps(line) + "\n")
                count += 1
    draft.replace(target)
    return count


def run(options: argparse.Namespace) -> str:
    """Do what is asked for; return what was done, in words.

    Raises:
        SourceFailed: when a store cannot be opened.
        BaseError: when it cannot be read or written.
        OSError: when a file cannot.
    """
    if options.what == "backup":
        return f"{backup(options.from_, options.to_)} files are listed in {options.to_.name}"
    source = end(options.from_, options.from_option, os.environ, "FROM_")
    target = end(options.to_, options.to_option, os.environ, "TO_")
    copied, size, kept = asyncio.run(migrate(source, target, options.at_once))
    return f"copied {copied} objects, {size} bytes; {kept} were there"


def main() -> int:
    """Run; return 1 after a last line that says what is wrong."""
    try:
        print(run(arguments(sys.argv[1:])))
    except (SourceFailed, BaseError, OSError) as error:
        print(f"error: {str(error).strip().partition(chr(10))[0]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # The threads of the store's client may still hold Python objects: where the interpreter is
    # taken down under them they abort, and what was copied whole would count as failed.
    os._exit(status)
