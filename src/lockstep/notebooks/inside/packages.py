"""``python -m lockstep.notebooks.inside.packages ROOT [-- COMMAND...]``: a lock, built once.

The lock comes in the variable ``LOCKSTEP_PACKAGES``. Its virtual environment is built in
``ROOT/HASH`` and counts once the file ``complete`` is in it; a build that was killed is made anew.
Kernels start by ``ROOT/HASH/bin/python``; a command after ``--`` finds that Python first.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

VARIABLE: Final = "LOCKSTEP_PACKAGES"
COMPLETE: Final = "complete"
_BELOW: Final = "lockstep-node.pth"


def lock_hash(lock: str) -> str:
    """Return the name of a lock's environment: another lock or Python has another."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return hashlib.sha256(f"{version}\n{lock}".encode()).hexdigest()[:24]


def build(root: Path, lock: str) -> Path:
    """Return the virtual environment of *lock*, built unless it is there.

    Raises:
        subprocess.CalledProcessError: when pip cannot install it; its words are in the log.
        OSError: when the disk is full.
    """
    place = root / lock_hash(lock)
    root.mkdir(parents=True, exist_ok=True)
    with (root / f"{place.name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if (place / COMPLETE).exists():
            return place
        shutil.rmtree(place, ignore_errors=True)
        _install(place, lock)
        (place / COMPLETE).touch()
    return place


def _install(place: Path, lock: str) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)  # noqa: S603
    requirements = place / "requirements.txt"
    requirements.write_text(lock)
    pip = [str(place / "bin/python"), "-m", "pip", "install", "--disable-pip-version-check"]
    subprocess.run([*pip, "--requirement", str(requirements)], check=True)  # noqa: S603
    if "ipykernel" not in lock:
        # What a kernel needs beside the user's packages comes from below them.
        (site,) = place.glob("lib/python*/site-packages")
        (site / _BELOW).write_text(sysconfig.get_path("purelib") + "\n")


def main() -> None:
    """Build the environment, and become the command that is to run in it, if there is one."""
    root, command = Path(sys.argv[1]), sys.argv[3:]
    place = build(root, os.environ[VARIABLE])
    print(f"packages are in {place}", flush=True)
    if command:
        path = f"{place}/bin:{os.environ.get('PATH', os.defpath)}"
        environ = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(place)}
        os.execvpe(command[0], command, environ)  # noqa: S606  the user's own command


if __name__ == "__main__":
    main()
