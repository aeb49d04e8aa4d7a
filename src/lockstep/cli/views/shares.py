"""Shares of GPUs as rows: what was granted of each card, and what is used of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lockstep.api import names
from lockstep.api.core import Pod
from lockstep.api.device_usage import DeviceUsage, ShareUsage
from lockstep.cli.views.devices import Filter
from lockstep.cli.views.nodes import natural
from lockstep.cli.views.table import Column, Table, table

COLUMNS: tuple[Column | str, ...] = (
    "Namespace",
    "Pod",
    "Container",
    "Queue",
    "Node",
    Column("GPU", number=True),
    Column("Memory", number=True),
    Column("Compute", number=True),
    "Policy",
    Column("Held back %", number=True),
    Column("Refused", number=True),
    "Leases",
)


def share_table(usages: Iterable[DeviceUsage], pods: Mapping[str, Pod], only: Filter) -> Table:
    """Return a line for each share of each card, by node, card and pod."""
    rows = [
        _row(usage.metadata.name, one, pods.get(one.pod))
        for usage in sorted(usages, key=lambda one: natural(one.metadata.name))
        for one in sorted(usage.shares, key=lambda one: (one.gpu, one.pod, one.container))
        if only.keeps(pods.get(one.pod))
    ]
    return table(COLUMNS, rows)


def _row(node: str, one: ShareUsage, pod: Pod | None) -> tuple[object, ...]:
    labels: Mapping[str, str] = pod.metadata.labels if pod else {}
    namespace, _, name = one.pod.partition("/")
    return (
        namespace,
        name,
        one.container,
        labels.get(names.QUEUE_LABEL, ""),
        node,
        one.gpu,
        f"{one.memory_used}/{one.memory or '-'}Mi",
        f"{one.compute_used}/{one.compute or '-'}%",
        one.policy,
        one.throttled,
        one.refused,
        "not renewed" if one.alone else "granted",
    )
