"""``python -m lockstep.train.deliver DIRECTORY``: puts the launcher where other images find it.

An init container with Lockstep's image runs it, so that the images of jobs need nothing but a
Python of 3.9 or later: ``DIRECTORY/bin/lockstep-run`` starts the launcher with that, and its ranks
find ``lockstep.train``.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

_SCRIPT = """#!/bin/sh
# Isolated: what lies in the program's directory is not taken for a module of Python's.
python=$(command -v python3 || command -v python) || {
  echo "lockstep-run: the image has no python3 on PATH (or set launcher: None)" >&2
  exit 127
}
exec "$python" -I -c '
import sys
sys.path.insert(0, sys.argv.pop(1))
from lockstep.train.run import main
main()
' "%s" "$@"
"""
_PACKAGE = """from pkgutil import extend_path

# The image may have the rest of it.
__path__ = extend_path(__path__, __name__)
"""

_BESIDE = ("health/core/rank_figures.py", "health/core/traces.py")
"""Modules outside of the launcher's package that it imports; they import no others."""


def deliver(directory: Path) -> None:
    """Write the launcher below *directory*.

    Raises:
        OSError: when it cannot be written.
    """
    package, source = directory / "lib" / "lockstep", Path(__file__).resolve().parents[1]
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source / "train", package / "train", ignore=skipped, dirs_exist_ok=True)
    for name in _BESIDE:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, package / name)
    for one in {package, *(folder for name in _BESIDE for folder in _folders(package, name))}:
        (one / "__init__.py").write_text(_PACKAGE)
    script = directory / "bin" / "lockstep-run"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(_SCRIPT % (directory / "lib"))
    script.chmod(0o755)


def _folders(package: Path, name: str) -> list[Path]:
    """Return the packages between *package* and the module *name* in it."""
    return [package / one for one in Path(name).parents if one != Path()]


def main(arguments: Sequence[str]) -> int:
    """Deliver; return the exit code."""
    if len(arguments) != 1:
        print("usage: python -m lockstep.train.deliver DIRECTORY", file=sys.stderr)
        return 2
    deliver(Path(arguments[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
