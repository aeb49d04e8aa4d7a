"""Make the environment with the kfp SDK that tests of pipelines compile and run components in."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
REQUIREMENTS: Final = HERE / "requirements.txt"


def environment() -> Path:
    """Return where the environment of the present pins belongs, whether it is there or not."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes())
    digest.update(f"{sys.version_info[:2]}".encode())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "lockstep" / "kfp" / digest.hexdigest()[:12]


def find() -> Path | None:
    """Return the environment, if it was made whole."""
    made = environment()
    return made if (made / ".whole").exists() else None


def main() -> int:
    """Make the environment where it is missing and return the exit status."""
    target = environment()
    if find():
        print(f"kfp: the environment is in {target}")
        return 0
    print(f"kfp: the SDK into {target}; about a minute", flush=True)
    venv.create(target, with_pip=True, clear=True)
    command = [str(target / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    command += ["--disable-pip-version-check", "-r", str(REQUIREMENTS)]
    done = subprocess.run(command, check=False)
    if done.returncode == 0:
        (target / ".whole").touch()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
