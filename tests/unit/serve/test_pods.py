"""What Lockstep adds to the pods of replicas."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.serve.core import pods

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ([], {NOT_READY, UNREACHABLE}),
        ([{"key": "gpu", "operator": "Exists"}], {NOT_READY, UNREACHABLE}),
        ([{"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 600}], {NOT_READY}),
        ([{"operator": "Exists"}], set()),
    ],
)
def test_replica_leaves_a_lost_node_unless_told_otherwise(given: Any, added: set[str]) -> None:
    template = {"spec": {"containers": [], "tolerations": given}}
    found = pods.to_place(template)["tolerations"]
    assert found[: len(given)] == given
    assert {one["key"] for one in found[len(given) :]} == added
    assert {one["tolerationSeconds"] for one in found[len(given) :]} <= {10}
