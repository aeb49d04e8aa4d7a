"""What ``kubectl get`` shows of each kind: short names and columns."""

from __future__ import annotations

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


@dataclass(frozen=True)
class Presentation:
    """What a CRD says about a kind beyond its fields."""

    resource: Resource[Any]
    short_names: tuple[str, ...]
    columns: tuple[tuple[str, str, str], ...]
    """Printer columns: name, type and JSONPath; a name in parentheses shows with ``-o wide``."""


PRESENTATIONS = (
    Presentation(
        TRAINING_JOBS,
        ("tj", "tjob"),
        (
            ("Framework", "string", ".spec.framework"),
            ("Phase", "string", ".status.phase"),
            ("Restarts", "integer", ".status.restarts"),
            ("Queue", "string", ".spec.queue"),
            ("Age", "date", ".metadata.creationTimestamp"),
            ("(Message)", "string", ".status.message"),
        ),
    ),
    Presentation(
        GANGS,
        (),
        (
            ("Phase", "string", ".status.phase"),
            ("Members", "integer", ".status.members"),
            ("Bound", "integer", ".status.bound"),
            ("Queue", "string", ".spec.queue"),
            ("Age", "date", ".metadata.creationTimestamp"),
            ("(Message)", "string", ".status.message"),
        ),
    ),
    Presentation(
        QUEUES,
        (),
        (
            ("Parent", "string", ".spec.parent"),
            ("Weight", "integer", ".spec.weight"),
            ("Pending", "integer", ".status.pending"),
            ("Running", "integer", ".status.running"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
    ),
    Presentation(
        ROUTES,
        (),
        (
            ("URL", "string", ".spec.url"),
            ("Closing", "string", ".spec.closing"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
    ),
    Presentation(
        ROUTERS,
        (),
        (
            ("URL", "string", ".spec.url"),
            ("Renewed", "date", ".status.renewedAt"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
    ),
    Presentation(
        TOPOLOGIES,
        (),
        (
            ("Tiers", "string", ".spec.tiers[*].name"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
    ),
    Presentation(
        NODE_POLICIES,
        (),
        (
            ("Tiers", "string", ".spec.tiers[*].name"),
            ("Queues", "string", ".spec.queues"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
    ),
    Presentation(
        NODE_POOLS,
        (),
        (
            ("Nodes", "integer", ".status.nodes"),
            ("Ready", "integer", ".status.ready"),
            ("Coming", "integer", ".status.coming"),
            ("Max", "integer", ".spec.max"),
            ("Reason", "string", ".status.reason"),
            ("Age", "date", ".metadata.creationTimestamp"),
            ("(Message)", "string", ".status.message"),
        ),
    ),
    Presentation(
        TEAMS,
        (),
        (
            ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
            ("Members", "integer", ".status.members"),
            ("Namespaces", "string", ".status.namespaces"),
            ("Age", "date", ".metadata.creationTimestamp"),
            ("(Message)", "string", '.status.conditions[?(@.type=="Ready")].message'),
        ),
    ),
    Presentation(
        ENVIRONMENTS,
        (),
        (
            ("Image", "string", ".spec.image"),
            ("Queue", "string", ".spec.queue"),
            ("Idle", "string", ".spec.idle.after"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
    ),
    Presentation(
        KERNELS,
        (),
        (
            ("Phase", "string", ".status.phase"),
            ("State", "string", ".status.executionState"),
            ("Environment", "string", ".spec.environment"),
            ("Notebook", "string", ".spec.notebook"),
            ("Age", "date", ".metadata.creationTimestamp"),
            ("(Message)", "string", ".status.message"),
        ),
    ),
    Presentation(
        DATASET_CACHES,
        (),
        (
            ("Node", "string", ".spec.node"),
            ("Phase", "string", ".status.phase"),
            ("Files", "integer", ".status.cachedFiles"),
            ("Bytes", "integer", ".status.cachedBytes"),
            ("Age", "date", ".metadata.creationTimestamp"),
            ("(Message)", "string", ".status.message"),
        ),
    ),
    Presentation(
        PRICE_LISTS,
        (),
        (
            ("Currency", "string", ".spec.currency"),
            ("GPU hour", "string", ".spec.prices[*].gpuHour"),
            ("Node hour", "string", ".spec.prices[*].nodeHour"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
    ),
    Presentation(
        USAGE_QUERIES,
        (),
        (
            ("State", "string", ".status.state"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
    ),
    Presentation(
        NETWORK_CHECKS,
        (),
        (
            ("Verdict", "string", ".status.verdict.kind"),
            ("Place", "string", ".status.verdict.place"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
    ),
    Presentation(
        PIPELINE_RUNS,
        ("pr",),
        (
            ("Phase", "string", ".status.phase"),
            ("Progress", "string", ".status.progress"),
            ("Queue", "string", ".spec.queue"),
            ("Age", "date", ".metadata.creationTimestamp"),
            ("(Message)", "string", ".status.message"),
        ),
    ),
    Presentation(
        PIPELINE_TRIGGERS,
        (),
        (
            ("Model", "string", ".spec.modelVersion.model"),
            ("Dataset", "string", ".spec.dataset"),
            ("Last run", "string", ".status.lastRun"),
            ("Age", "date", ".metadata.creationTimestamp"),
            ("(Message)", "string", ".status.message"),
        ),
    ),
    Presentation(
        MODEL_VERSIONS,
        ("mv",),
        (
            ("Model", "string", ".spec.model"),
            ("Version", "string", ".spec.version"),
            ("Stage", "string", ".spec.stage"),
            ("URI", "string", ".spec.uri"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
    ),
    Presentation(
        NODE_HEALTHS,
        (),
        (
            ("Findings", "string", ".spec.findings[*].cause"),
            ("Fenced", "string", ".status.fenced"),
            ("Tainted", "boolean", ".status.tainted"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
    ),
    Presentation(
        HEALTH_POLICIES,
        (),
        (
            ("Dry run", "boolean", ".spec.dryRun"),
            ("Share", "number", ".spec.share"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
    ),
    Presentation(
        DEVICE_USAGES,
        (),
        (
            ("GPUs", "string", ".gpus[*].index"),
            ("Used", "string", ".gpus[*].utilization"),
            ("Seen", "date", ".time"),
        ),
    ),
)
