"""Where the programs of a real Kubernetes control plane are, as envtest looks for them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tools.kube import build

_MISSING = "no real Kubernetes: "


def find(name: str) -> Path | None:
    """Return the program, or the file beside the programs, of this name, if this machine has it."""
    return next((path for path in _candidates(name) if path.is_file()), None)


def need(name: str) -> Path:
    """Return the program of this name, or skip the test."""
    found = find(name)
    if found is None:
        pytest.skip(f"{_MISSING}{name} is missing")
    return found


def summary(skipped: Iterable[str]) -> list[str]:
    """Return what to tell after a run in which tests were *skipped* for these reasons."""
    names = [r.split(_MISSING)[1].split()[0] for r in skipped if _MISSING in r]
    if not names:
        return []
    return [
        f"{len(names)} tests did not run on real Kubernetes: this machine has no "
        f"{', '.join(sorted(set(names)))}.",
        "Run `make kube` (it needs Go), or set KUBEBUILDER_ASSETS to the programs' directory.",
    ]


def _candidates(name: str) -> Iterator[Path]:
    own = os.environ.get(f"TEST_ASSET_{name.upper().replace('-', '_')}")
    if own:
        yield Path(own)
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        yield Path(assets) / name
    yield build.directory() / name
