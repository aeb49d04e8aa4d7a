"""Build the Kubernetes programs that tests and benchmarks run, from pinned modules.

They go into a directory of the user's cache whose name follows from the pins, so that a second call
finds them there and a changed pin builds anew. Go's own variables (``GOFLAGS`` and the like) hold.
"""

from __future__ import annotations

import hashlib
import json
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
STAGES: Final = "kwok-stages.yaml"
"""What kwok lets happen to pods and nodes; without such a file it ends at once."""
_STAGE_FILES: Final = (
    "pod/fast/pod-*.yaml",
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
)


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
    if not missing and (target / STAGES).exists():
        print(f"kube: all programs are in {target}")
        return 0
    if shutil.which("go") is None:
        print("kube: Go is not on the PATH; it is needed to build Kubernetes", file=sys.stderr)
        return 1
    target.mkdir(parents=True, exist_ok=True)
    if missing:
        print(f"kube: {len(missing)} programs into {target}; about 7 minutes at first", flush=True)
    return 0 if _build_all(missing, target) and _write_stages(target / STAGES) else 1


def _build_all(missing: list[tuple[str, str, str]], target: Path) -> bool:
    for number, (module, package, name) in enumerate(missing, 1):
        print(f"kube: [{number}/{len(missing)}] {name} ...", flush=True)
        started = time.monotonic()
        if not _build(module, package, target / name):
            print(f"kube: {name} could not be built", file=sys.stderr)
            return False
        print(f"kube: [{number}/{len(missing)}] {name} in {time.monotonic() - started:.0f} s")
    return True


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


def _write_stages(path: Path) -> bool:
    """Write kwok's own stages, which lie in its module, into one file."""
    found = subprocess.run(
        ["go", "mod", "download", "-json", "sigs.k8s.io/kwok"],
        cwd=HERE / "kwok",
        stdout=subprocess.PIPE,
        check=False,
    )
    if found.returncode != 0:
        print(f"kube: {STAGES} could not be written", file=sys.stderr)
        return False
    stages = Path(json.loads(found.stdout)["Dir"]) / "kustomize" / "stage"
    files = [file for pattern in _STAGE_FILES for file in sorted(stages.glob(pattern))]
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text("\n---\n".join(file.read_text() for file in files))
    draft.replace(path)
    return True


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
