"""Argo's own examples on a control plane of their own; long, and only where they are."""

from __future__ import annotations

import pytest
from bench.argo_examples import run
from tests.support import argo_examples


@pytest.mark.soak
def test_examples_that_need_no_cloud_come_to_their_outputs() -> None:
    if argo_examples.directory() is None:
        pytest.skip(f"no examples of Argo: {argo_examples.VARIABLE} names no directory")
    missed = [figure for figure in run() if figure.met is False]
    assert not missed
