"""Build the Kubernetes programs that tests and benchmarks run, from pinned modules.

They go into a directory of the user's cache whose name follows from the pins, so that a second call
finds them there and a changed pin builds anew. Go's own variables (``GOFLAGS`` and the like) hold.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
MODULES: Final = ("etcd", "kubernetes", "kwok")
_NAMES: Final = {"go.etcd.io/etcd/server/v3": "etcd"}
"""Programs that are not called as the last part of their package's path."""
_TOOL: Final = re.compile(r"^(?:tool\s+|\t)(\S+/\S+)$", re.MULTILINE)
_STAMPS: Final = {
    "kubernetes": ("k8s.io/kubernetes", "k8s.io/component-base/version.git{}"),
    "kwok": ("sigs.k8s.io/kwok", "sigs.k8s.io/kwok/pkg/consts.{}"),
}
"""The module whose version the programs show, and the variables that hold it."""


def directory() -> Path:
    """Return where the programs of the present pins belong, whether they are there or not."""
    digest = hashlib.sha256(f"{platform.system()}-{platform.machine()}".encode())
    for module in MODULES:
        for name in ("go.mod", "go.sum"):
            digest.update((HERE / module / name).read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = f"{_version('kubernetes')}-{digest.hexdigest()[:12]}"
    return cache / "lockstep" / "kube" / name


def programs() -> Iterator[tuple[str, str, str]]:
    """Yield module, package and name of every program."""
    for module in MODULES:
        for package in _TOOL.findall((HERE / module / "go.mod").read_text()):
            yield module, package, _NAMES.get(package, package.rpartition("/")[2])


def main() -> int:
    """Build what is missing and return the exit status."""
    target = directory()
    missing = [(m, p, n) for m, p, n in programs() if not (target / n).exists()]
    if not missing:
        print(f"kube: all programs are in {target}")
        return 0
    if shutil.which("go") is None:
        print("kube: Go is not on the PATH; it is needed to build Kubernetes", file=sys.stderr)
        return 1
    target.mkdir(parents=True, exist_ok=True)
    print(f"kube: {len(missing)} programs into {target}; about 7 minutes at first", flush=True)
    for number, (module, package, name) in enumerate(missing, 1):
        print(f"kube: [{number}/{len(missing)}] {name} ...", flush=True)
        started = time.monotonic()
        if not _build(module, package, target / name):
            print(f"kube: {name} could not be built", file=sys.stderr)
            return 1
        print(f"kube: [{number}/{len(missing)}] {name} in {time.monotonic() - started:.0f} s")
    return 0


def _build(module: str, package: str, program: Path) -> bool:
    """Build one program; it appears under its name only when it is whole."""
    draft = program.with_name(f".{program.name}.{os.getpid()}")
    command = ["go", "build", "-trimpath", "-ldflags", _ldflags(module), "-o", str(draft), package]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    try:
        done = subprocess.run(command, cwd=HERE / module, env=environment, check=False)
        if done.returncode == 0:
            draft.replace(program)
    finally:
        draft.unlink(missing_ok=True)
    return done.returncode == 0


def _ldflags(module: str) -> str:
    flags = ["-s", "-w"]
    if module in _STAMPS:
        version = _version(module)
        major, minor = version.removeprefix("v").split(".")[:2]
        variable = _STAMPS[module][1]
        stamps = {"Version": version}
        if module == "kubernetes":
            stamps |= {"Major": major, "Minor": minor, "TreeState": "clean"}
        flags += [f"-X {variable.format(name)}={value}" for name, value in stamps.items()]
    return " ".join(flags)


def _version(module: str) -> str:
    pinned = re.search(
        rf"^(?:require\s+|\t){re.escape(_STAMPS[module][0])} (\S+)",
        (HERE / module / "go.mod").read_text(),
        re.MULTILINE,
    )
    if pinned is None:
        raise ValueError(f"tools/kube/{module}/go.mod pins no {_STAMPS[module][0]}")
    return pinned[1]


if __name__ == "__main__":
    sys.exit(main())
