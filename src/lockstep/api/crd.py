"""CRD manifests, generated from the kinds.

The structs are the only place where a field is written down; its description, bounds and default
reach the server and ``kubectl explain`` from there.
"""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import msgspec
from msgspec import inspect as shapes

from lockstep import __version__
from lockstep.api.dataset_cache import DATASET_CACHES
from lockstep.api.device_usage import DEVICE_USAGES
from lockstep.api.gang import GANGS, GangGroup, GangSpec
from lockstep.api.health_policy import HEALTH_POLICIES
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.model_version import MODEL_VERSIONS
from lockstep.api.names import SCHEMA_ANNOTATION
from lockstep.api.network import NETWORK_CHECKS
from lockstep.api.node_health import NODE_HEALTHS
from lockstep.api.node_policy import NODE_POLICIES, NodePolicySpec
from lockstep.api.node_pool import NODE_POOLS, NodePoolSpec, PoolProvider
from lockstep.api.notebooks import ENVIRONMENTS, KERNELS
from lockstep.api.pipeline import PIPELINE_RUNS
from lockstep.api.pipeline_trigger import PIPELINE_TRIGGERS
from lockstep.api.price_list import PRICE_LISTS, Price
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.serving import ROUTERS, ROUTES
from lockstep.api.team import TEAMS
from lockstep.api.topology import TOPOLOGIES, TopologySpec
from lockstep.api.training import TRAINING_JOBS, Role, TrainingJobSpec

Json = dict[str, Any]


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


@dataclass(frozen=True)
class Rule:
    """A rule across fields, in CEL: which field it blames, and what to write instead."""

    rule: str
    message: str
    field: str = ""

    def as_json(self) -> Json:
        """Return the rule as ``x-kubernetes-validations`` has it."""
        built = {"rule": self.rule, "message": self.message}
        if self.field:
            built["fieldPath"] = self.field
        return built


def _bound(low: str, high: str, blamed: str, other: str, words: str) -> Rule:
    # No messageExpression with the values: kube-apiserver takes the length of string(int) for
    # unbounded and refuses the whole CRD for its estimated cost.
    return Rule(
        f"!has(self.{low}) || !has(self.{high}) || self.{low} <= self.{high}",
        f"{words} {other}",
        f".{blamed}",
    )


_TIERS_DIFFER = Rule(
    "self.tiers.all(t, self.tiers.exists_one(other, other.name == t.name))",
    "each must have a name of its own",
    ".tiers",
)
RULES: dict[type, tuple[Rule, ...]] = {
    GangSpec: (
        Rule(
            "has(self.minMember) != (has(self.groups) && size(self.groups) > 0)",
            "exactly one of minMember (one group) and groups (several) must be set",
        ),
    ),
    GangGroup: (
        _bound("min", "desired", "desired", "min", "must not be less than"),
        Rule(
            "!has(self.spares) || self.spares == 0 || (has(self.min) && has(self.desired)"
            " && self.spares <= self.desired - self.min)",
            "must not exceed desired less min",
            ".spares",
        ),
    ),
    Role: (
        _bound("min", "replicas", "min", "replicas", "must not exceed"),
        _bound("replicas", "max", "max", "replicas", "must not be less than"),
    ),
    TrainingJobSpec: (
        Rule(
            "self.framework == oldSelf.framework",
            "cannot change; create another job",
            ".framework",
        ),
        Rule(
            "!(self.framework in ['mpi', 'horovod']) || (self.roles.exists(r, r.name == 'launcher')"
            " && self.roles.exists(r, r.name == 'worker'))",
            "frameworks mpi and horovod need the roles launcher and worker",
            ".roles",
        ),
    ),
    Price: (
        Rule(
            "has(self.nodeHour) != has(self.gpuHour)",
            "exactly one of nodeHour and gpuHour must be set",
        ),
    ),
    NodePoolSpec: (_bound("min", "max", "min", "max", "must not exceed"),),
    PoolProvider: (
        Rule(
            "[has(self.simulated), has(self.provisioningRequest), has(self.karpenter), "
            "has(self.command), has(self.hook)].filter(given, given).size() == 1",
            "exactly one of simulated, provisioningRequest, karpenter, command and hook must be "
            "set",
        ),
    ),
    TopologySpec: (_TIERS_DIFFER,),
    NodePolicySpec: (_TIERS_DIFFER,),
}

# Lists whose items are told apart by a key, so that appliers can own single items. Tiers are not
# among them: their order says something, and of two appliers' tiers it would be anybody's.
LIST_KEYS: dict[type, str] = {
    Condition: "type",
    Role: "name",
    GangGroup: "name",
}


def manifests() -> list[Json]:
    """Return the CRD of every kind, as plain objects."""
    return [_manifest(shown) for shown in PRESENTATIONS]


def to_yaml() -> str:
    """Return every CRD as one YAML stream."""
    import yaml

    return yaml.safe_dump_all(manifests(), sort_keys=False, width=100)


@cache
def schema(kind: str) -> Json:
    """Return the structural schema of our kind called *kind*.

    Raises:
        KeyError: when it is not one of ours.
    """
    by_kind = {shown.resource.kind: shown.resource for shown in PRESENTATIONS}
    return _schema_of(by_kind[kind])


def _manifest(shown: Presentation) -> Json:
    res = shown.resource
    version: Json = {
        "name": res.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema(res.kind)},
        "additionalPrinterColumns": [_column(*column) for column in shown.columns],
    }
    if "status" in schema(res.kind)["properties"]:
        version["subresources"] = {"status": {}}
    spec: Json = {
        "group": res.group,
        "scope": "Namespaced" if res.namespaced else "Cluster",
        "names": {
            "plural": res.plural,
            "singular": res.kind.lower(),
            "kind": res.kind,
            "listKind": f"{res.kind}List",
            "categories": ["lockstep"],
            **({"shortNames": list(shown.short_names)} if shown.short_names else {}),
        },
        "versions": [version],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{res.plural}.{res.group}",
            "annotations": {SCHEMA_ANNOTATION: f"{__version__}+{_sum(spec)}"},
        },
        "spec": spec,
    }


def _sum(spec: Json) -> str:
    return hashlib.sha256(msgspec.json.encode(spec, order="sorted")).hexdigest()[:8]


def outdated(found: str, ours: str) -> bool:
    """Return whether a CRD that bears *found* is to become the one that bears *ours*.

    One of an older version is, and one of the same version that says something else; one of a
    newer version never is. What bears nothing comes from before there was such a mark.
    """
    if found == ours:
        return False
    return _release(found) <= _release(ours)


def _release(mark: str) -> tuple[int, ...]:
    numbers = mark.partition("+")[0].split(".")
    return tuple(int(number) for number in numbers if number.isdecimal())


def _column(name: str, type_: str, path: str) -> Json:
    column: Json = {"name": name.strip("()"), "type": type_, "jsonPath": path}
    if name.startswith("("):
        column["priority"] = 1
    return column


def _schema_of(res: Resource[Any]) -> Json:
    built = _struct(res.type)
    properties = built["properties"]
    properties["metadata"] = {"type": "object"}
    for name in ("apiVersion", "kind"):
        properties[name] = {"type": "string"}
    built["required"] = [n for n in built.get("required", []) if n != "metadata"]
    if not built["required"]:
        del built["required"]
    return built


def _struct(type_: type[msgspec.Struct]) -> Json:
    built: Json = {"type": "object"}
    if doc := _doc(type_):
        built["description"] = doc
    properties: Json = {}
    required: list[str] = []
    info = cast(shapes.StructType, shapes.type_info(type_))
    for f in info.fields:
        properties[f.encode_name] = _with_default(_of(f.type), f)
        if f.required:
            required.append(f.encode_name)
    if properties:
        # A server drops an empty one, and then nothing is ever as it was applied.
        built["properties"] = properties
    if required:
        built["required"] = required
    if rules := RULES.get(type_):
        built["x-kubernetes-validations"] = [rule.as_json() for rule in rules]
    return built


def _with_default(built: Json, f: shapes.Field) -> Json:
    default = f.default
    if isinstance(default, str | int | bool) and default != "":
        return {**built, "default": default}
    return built


def _of(type_: shapes.Type) -> Json:
    if isinstance(type_, shapes.Metadata):
        built = _of(type_.type)
        extra = type_.extra_json_schema or {}
        return {
            **built,
            **({"description": extra["description"]} if "description" in extra else {}),
        }
    if isinstance(type_, shapes.UnionType):
        return _union([t for t in type_.types if not isinstance(t, shapes.NoneType)])
    if isinstance(type_, shapes.StructType):
        if type_.cls is ObjectMeta:
            return {"type": "object"}
        return _struct(type_.cls)
    if isinstance(type_, shapes.ListType):
        return _list(type_)
    if isinstance(type_, shapes.DictType):
        return _dict(type_)
    return _scalar(type_)


def _union(types: list[shapes.Type]) -> Json:
    if len(types) == 1:
        return _of(types[0])
    # The only wider union among the kinds is a quantity; some must not be negative.
    bounds = {key: value for one in types for key, value in _scalar(one).items() if key != "type"}
    return {"x-kubernetes-int-or-string": True, **bounds}


def _list(type_: shapes.ListType) -> Json:
    built: Json = {"type": "array", "items": _of(type_.item_type)}
    if type_.min_length is not None:
        built["minItems"] = type_.min_length
    if type_.max_length is not None:
        built["maxItems"] = type_.max_length
    item = type_.item_type
    if isinstance(item, shapes.StructType) and (key := LIST_KEYS.get(item.cls)):
        built |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
    return built


def _dict(type_: shapes.DictType) -> Json:
    if isinstance(type_.value_type, shapes.AnyType):
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "additionalProperties": _of(type_.value_type)}


def _scalar(type_: shapes.Type) -> Json:
    if isinstance(type_, shapes.LiteralType):
        return {"type": "string", "enum": list(type_.values)}
    if isinstance(type_, shapes.BoolType):
        return {"type": "boolean"}
    if isinstance(type_, shapes.IntType | shapes.FloatType):
        bounds = {"minimum": type_.ge, "maximum": type_.le}
        name = "integer" if isinstance(type_, shapes.IntType) else "number"
        return {"type": name, **{k: v for k, v in bounds.items() if v is not None}}
    if isinstance(type_, shapes.StrType):
        limits = {
            "minLength": type_.min_length,
            "maxLength": type_.max_length,
            "pattern": type_.pattern,
        }
        return {"type": "string", **{k: v for k, v in limits.items() if v is not None}}
    raise TypeError(f"no structural schema for {type_}")


def _doc(type_: type) -> str:
    return (inspect.getdoc(type_) or "").split("\n\n")[0].replace("\n", " ")
