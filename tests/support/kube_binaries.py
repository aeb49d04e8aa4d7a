"""Where the programs of a real Kubernetes control plane are, as envtest looks for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.kube import build


def find(name: str) -> Path | None:
    """Return the program, or the file beside the programs, of this name, if this machine has it."""
    return next((path for path in _candidates(name) if path.is_file()), None)


def need(name: str) -> Path:
    """Return the program of this name, or skip the test."""
    found = find(name)
    if found is None:
        pytest.skip(f"no real Kubernetes: {name} is missing (`make kube` builds it; needs Go)")
    return found


def _candidates(name: str) -> Iterator[Path]:
    own = os.environ.get(f"TEST_ASSET_{name.upper().replace('-', '_')}")
    if own:
        yield Path(own)
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        yield Path(assets) / name
    yield build.directory() / name
