"""A definition is established when its condition says so, whatever else it leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.core import AnyObject
from lockstep.api.meta import ObjectMeta
from lockstep.kube.crds import _established

ESTABLISHED = {"type": "Established", "status": "True"}


@pytest.mark.parametrize(
    ("status", "established"),
    [
        ({}, False),
        ({"conditions": None}, False),  # what a real server answers right after the creation
        ({"conditions": [{"type": "NamesAccepted", "status": "True"}]}, False),
        ({"conditions": [{**ESTABLISHED, "status": "False"}]}, False),
        ({"conditions": [ESTABLISHED]}, True),
    ],
)
def test_established(status: dict[str, Any], established: bool) -> None:
    definition = AnyObject(metadata=ObjectMeta(name="gangs.lockstep.dev"), status=status)
    assert _established(definition) is established
