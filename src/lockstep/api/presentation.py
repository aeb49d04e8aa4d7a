"""What ``kubectl get`` shows of each kind: short names and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lockstep.api.dataset_cache import DATASET_CACHES
from lockstep.api.device_usage import DEVICE_USAGES
from lockstep.api.gang import GANGS
from lockstep.api.health_policy import HEALTH_POLICIES
from lockstep.api.model_version import MODEL_VERSIONS
from lockstep.api.network import NETWORK_CHECKS
from lockstep.api.node_health import NODE_HEALTHS
from lockstep.api.node_policy import NODE_POLICIES
from lockstep.api.node_pool import NODE_POOLS
from lockstep.api.notebooks import ENVIRONMENTS, KERNELS
from lockstep.api.pipeline import PIPELINE_RUNS
from lockstep.api.pipeline_trigger import PIPELINE_TRIGGERS
from lockstep.api.price_list import PRICE_LISTS
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.serving import ROUTERS, ROUTES
from lockstep.api.team import TEAMS
from lockstep.api.topology import TOPOLOGIES
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.usage_query import USAGE_QUERIES

Printed = tuple[str, str, str]
"""A printer column: name, type and JSONPath; a name in parentheses shows with ``-o wide``."""
_AGE: Printed = ("Age", "date", ".metadata.creationTimestamp")


@dataclass(frozen=True)
class Presentation:
    """What a CRD says about a kind beyond its fields."""

    resource: Resource[Any]
    columns: tuple[Printed, ...]
    short_names: Sequence[str] = ()


def _shown(
    resource: Resource[Any], *columns: Printed, short_names: Sequence[str] = ()
) -> Presentation:
    """Return what shows these columns, and the age before those that only ``-o wide`` shows."""
    usual = [one for one in columns if not one[0].startswith("(")]
    return Presentation(resource, (*usual, _AGE, *columns[len(usual) :]), short_names)


PRESENTATIONS = (
    _shown(
        TRAINING_JOBS,
        ("Framework", "string", ".spec.framework"),
        ("Phase", "string", ".status.phase"),
        ("Restarts", "integer", ".status.restarts"),
        ("Queue", "string", ".spec.queue"),
        ("(Message)", "string", ".status.message"),
        short_names=("tj", "tjob"),
    ),
    _shown(
        GANGS,
        ("Phase", "string", ".status.phase"),
        ("Members", "integer", ".status.members"),
        ("Bound", "integer", ".status.bound"),
        ("Queue", "string", ".spec.queue"),
        ("(Message)", "string", ".status.message"),
    ),
    _shown(
        QUEUES,
        ("Parent", "string", ".spec.parent"),
        ("Weight", "number", ".spec.weight"),
        ("Pending", "integer", ".status.pending"),
        ("Running", "integer", ".status.running"),
    ),
    _shown(
        ROUTES,
        ("URL", "string", ".spec.url"),
        ("Closing", "string", ".spec.closing"),
    ),
    _shown(
        ROUTERS,
        ("URL", "string", ".spec.url"),
        ("Renewed", "date", ".status.renewedAt"),
    ),
    _shown(TOPOLOGIES, ("Tiers", "string", ".spec.tiers[*].name")),
    _shown(
        NODE_POLICIES,
        ("Tiers", "string", ".spec.tiers[*].name"),
        ("Queues", "string", ".spec.queues"),
    ),
    _shown(
        NODE_POOLS,
        ("Nodes", "integer", ".status.nodes"),
        ("Ready", "integer", ".status.ready"),
        ("Coming", "integer", ".status.coming"),
        ("Max", "integer", ".spec.max"),
        ("Reason", "string", ".status.reason"),
        ("(Message)", "string", ".status.message"),
    ),
    _shown(
        TEAMS,
        ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
        ("Members", "integer", ".status.members"),
        ("Namespaces", "string", ".status.namespaces"),
        ("(Message)", "string", '.status.conditions[?(@.type=="Ready")].message'),
    ),
    _shown(
        ENVIRONMENTS,
        ("Image", "string", ".spec.image"),
        ("Queue", "string", ".spec.queue"),
        ("Idle", "string", ".spec.idle.after"),
    ),
    _shown(
        KERNELS,
        ("Phase", "string", ".status.phase"),
        ("State", "string", ".status.executionState"),
        ("Environment", "string", ".spec.environment"),
        ("Notebook", "string", ".spec.notebook"),
        ("(Message)", "string", ".status.message"),
    ),
    _shown(
        DATASET_CACHES,
        ("Node", "string", ".spec.node"),
        ("Phase", "string", ".status.phase"),
        ("Files", "integer", ".status.cachedFiles"),
        ("Bytes", "integer", ".status.cachedBytes"),
        ("(Message)", "string", ".status.message"),
    ),
    _shown(
        PRICE_LISTS,
        ("Currency", "string", ".spec.currency"),
        ("GPU hour", "string", ".spec.prices[*].gpuHour"),
        ("Node hour", "string", ".spec.prices[*].nodeHour"),
    ),
    _shown(USAGE_QUERIES, ("State", "string", ".status.state")),
    _shown(
        NETWORK_CHECKS,
        ("Verdict", "string", ".status.verdict.kind"),
        ("Place", "string", ".status.verdict.place"),
    ),
    _shown(
        PIPELINE_RUNS,
        ("Phase", "string", ".status.phase"),
        ("Progress", "string", ".status.progress"),
        ("Queue", "string", ".spec.queue"),
        ("(Message)", "string", ".status.message"),
        short_names=("pr",),
    ),
    _shown(
        PIPELINE_TRIGGERS,
        ("Model", "string", ".spec.modelVersion.model"),
        ("Dataset", "string", ".spec.dataset"),
        ("Last run", "string", ".status.lastRun"),
        ("(Message)", "string", ".status.message"),
    ),
    _shown(
        MODEL_VERSIONS,
        ("Model", "string", ".spec.model"),
        ("Version", "string", ".spec.version"),
        ("Stage", "string", ".spec.stage"),
        ("URI", "string", ".spec.uri"),
        short_names=("mv",),
    ),
    _shown(
        NODE_HEALTHS,
        ("Findings", "string", ".spec.findings[*].cause"),
        ("Fenced", "string", ".status.fenced"),
        ("Tainted", "boolean", ".status.tainted"),
    ),
    _shown(
        HEALTH_POLICIES,
        ("Dry run", "boolean", ".spec.dryRun"),
        ("Share", "number", ".spec.share"),
    ),
    Presentation(
        DEVICE_USAGES,
        (
            ("GPUs", "string", ".gpus[*].index"),
            ("Used", "string", ".gpus[*].utilization"),
            ("Seen", "date", ".time"),
        ),
    ),
)
