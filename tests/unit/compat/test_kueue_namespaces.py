"""Which namespaces may use the Queue that stands for a ClusterQueue."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lockstep.api.core import AnyObject
from lockstep.api.queue import Queue
from lockstep.api.queue_access import rule_of
from lockstep.compat.kueue.translate import cluster_queue, local
from lockstep.compat.translation import nothing

SPACES: dict[str, dict[str, str]] = {
    "lab": {"kind": "research"},
    "shop": {"kind": "sales"},
    "x": {},
}
IN = [{"key": "kind", "operator": "In", "values": ["research", "play"]}]


@pytest.mark.parametrize(
    ("spec", "let_in"),
    [
        ({}, ""),
        ({"namespaceSelector": {}}, "lab shop x"),
        ({"namespaceSelector": {"matchLabels": {"kind": "sales"}}}, "shop"),
        ({"namespaceSelector": {"matchExpressions": IN}}, "lab"),
        ({"namespaceSelector": {"matchLabels": {"kind": "sales"}, "matchExpressions": IN}}, ""),
    ],
)
def test_local_queue_lets_in_what_its_cluster_queue_selects(
    spec: dict[str, Any], let_in: str
) -> None:
    made = [
        *cluster_queue(foreign("ClusterQueue", {"name": "cq"}, spec), nothing).objects,
        *local(
            foreign("LocalQueue", {"name": "own", "namespace": "lab"}, {"clusterQueue": "cq"})
        ).objects,
    ]
    queues = {one["metadata"]["name"]: msgspec.convert(one, Queue) for one in made}
    for name in ("cq", "lab.own"):
        rule = rule_of(name, queues)
        found = [one for one in SPACES if rule is None or rule.lets(one, SPACES[one])]
        assert found == let_in.split()


def foreign(kind: str, meta: dict[str, str], spec: dict[str, Any]) -> AnyObject:
    tree = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": meta, "spec": spec}
    return msgspec.convert(tree, AnyObject)
