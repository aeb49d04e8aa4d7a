"""Build Helm from its pinned module, to render the chart and to hold the manifest against it.

It goes into a directory of the user's cache whose name follows from the pin.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
PACKAGE: Final = "helm.sh/helm/v4/cmd/helm"


def program() -> Path:
    """Return where Helm belongs, whether it is there or not."""
    module = (HERE / "go.mod").read_text()
    pinned = re.search(r"helm\.sh/helm/v4 (\S+)", module)
    if pinned is None:
        raise ValueError("tools/helm/go.mod pins no Helm")
    digest = hashlib.sha256(f"{platform.system()}-{platform.machine()}".encode())
    digest.update((HERE / "go.sum").read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "lockstep" / "helm" / f"{pinned[1]}-{digest.hexdigest()[:12]}" / "helm"


def find() -> Path | None:
    """Return the Helm that was built; one of another version may render otherwise."""
    return program() if os.access(program(), os.X_OK) else None


def main() -> int:
    """Build it unless it is there and return the exit status."""
    target = program()
    if target.exists():
        print(f"helm: {target} is there")
        return 0
    if shutil.which("go") is None:
        print("helm: Go is not on the PATH; it is needed to build Helm", file=sys.stderr)
        return 1
    print(f"helm: {target}; about two minutes, once", flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".helm.{os.getpid()}")
    command = ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(draft), PACKAGE]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    try:
        done = subprocess.run(command, cwd=HERE, env=environment, check=False)
        if done.returncode == 0:
            draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
