"""The kinds that have a page of their own, and the columns in which a list shows them.

Columns read plain trees with care: fields that others write may be missing or of another type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from lockstep.api.core import AnyObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.resource import Resource

Cell = str | int | float | bool | None
Shape = Literal["text", "state", "number", "percent", "bytes", "time", "why", "list", "link"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name in the catalogue of texts, how it is drawn, and what stands in it."""

    name: str
    shape: Shape
    of: Callable[[AnyObject], Cell]


@dataclass(frozen=True, slots=True)
class Kind:
    """A page of the console: the word in its address, the kind, and the columns of its list."""

    word: str
    resource: Resource[Any]
    columns: tuple[Column, ...]
    state: str = ""
    """Column by which the list is filtered with one click; none when empty."""

    def rights(self) -> str:
        """Return the kind as RBAC names it."""
        group = self.resource.group
        return f"{self.resource.plural}.{group}" if group else self.resource.plural


def at(tree: Any, *path: str) -> Any:
    """Return what stands at a path of a tree of objects; None where there is nothing."""
    for step in path:
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(step)
    return tree


def text(tree: Any, *path: str) -> str:
    """Return the text at a path; empty where there is none."""
    found = at(tree, *path)
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found)[:500] if isinstance(found, str | int | float) else ""


def number(tree: Any, *path: str) -> float | None:
    """Return the number at a path, if there is one."""
    found = at(tree, *path)
    if isinstance(found, int | float) and not isinstance(found, bool):
        return found
    try:
        return float(found) if isinstance(found, str) else None
    except ValueError:
        return None


def count(tree: Any, *path: str) -> int:
    """Return how many things stand at a path."""
    found = at(tree, *path)
    return len(found) if isinstance(found, list | Mapping) else 0


def listed(tree: Any, *path: str) -> str:
    """Return the texts of a list, or the names of a mapping, in one."""
    found = at(tree, *path)
    if isinstance(found, Mapping):
        return ", ".join(f"{key}: {value}" for key, value in list(found.items())[:8])[:500]
    if isinstance(found, list):
        return ", ".join(str(one) for one in found[:8] if isinstance(one, str | int | float))[:500]
    return ""


def condition(tree: Any, wanted: str = "Ready") -> Mapping[str, Any]:
    """Return a condition of a status; empty where there is none."""
    found = at(tree, "conditions")
    for one in found if isinstance(found, list) else ():
        if isinstance(one, Mapping) and one.get("type") == wanted:
            return one
    return {}


def ready(obj: AnyObject) -> str:
    """Return Ready, NotReady or Unknown, as the condition says."""
    known = {"True": "Ready", "False": "NotReady"}
    return known.get(str(condition(obj.status).get("status")), "Unknown")


def _spec(name: str, shape: Shape, *path: str) -> Column:
    reader: Any = {"number": number, "list": listed}.get(shape, text)
    return Column(name, shape, lambda obj: reader(obj.spec, *path))


def _status(name: str, shape: Shape, *path: str) -> Column:
    numbers = ("number", "percent", "bytes")
    reader: Any = number if shape in numbers else listed if shape == "list" else text
    return Column(name, shape, lambda obj: reader(obj.status, *path))


def _own(plural: str, kind: str, *, namespaced: bool = True) -> Resource[Any]:
    return Resource(GROUP, VERSION, plural, kind, namespaced, AnyObject)


AGE: Final = Column("age", "time", lambda obj: obj.metadata.creation_timestamp or "")
_READY: Final = Column("state", "state", ready)
_WHY: Final = Column("why", "why", lambda obj: str(condition(obj.status).get("message") or ""))


def _notebook_state(obj: AnyObject) -> str:
    if "kubeflow-resource-stopped" in obj.metadata.annotations:
        return "Stopped"
    if (number(obj.status, "readyReplicas") or 0) > 0:
        return "Running"
    return "Starting"


def _notebook_why(obj: AnyObject) -> str:
    state = at(obj.status, "containerState", "waiting")
    return text(state, "message") or text(state, "reason") or _WHY.of(obj)  # type: ignore[return-value]


def _containers(obj: AnyObject) -> list[Any]:
    found = at(obj.spec, "template", "spec", "containers")
    return found if isinstance(found, list) else []


def _image(obj: AnyObject) -> str:
    return next((text(one, "image") for one in _containers(obj)), "")


def _gpus(obj: AnyObject) -> float:
    limits = (number(c, "resources", "limits", "nvidia.com/gpu") for c in _containers(obj))
    return sum(amount or 0 for amount in limits)


def _predictor(obj: AnyObject) -> str:
    model = at(obj.spec, "predictor", "model")
    return text(model, "modelFormat", "name") or ("custom" if at(obj.spec, "predictor") else "")


def _mounts(obj: AnyObject) -> str:
    found = at(obj.spec, "mounts")
    points = [text(one, "mountPoint") for one in (found if isinstance(found, list) else ())]
    return ", ".join(filter(None, points))[:500]


def _findings(obj: AnyObject) -> list[Mapping[str, Any]]:
    found = at(obj.spec, "findings")
    kept = found if isinstance(found, list) else []
    return [one for one in kept if isinstance(one, Mapping)]


def _worst(obj: AnyObject) -> str:
    # The surest finding says most about the node.
    worst = max(_findings(obj), key=lambda one: number(one, "confidence") or 0, default={})
    where = f"{text(worst, 'device')}: " if text(worst, "device") else ""
    return where + text(worst, "cause")


def _fenced(obj: AnyObject) -> str:
    if at(obj.status, "tainted"):
        return "Tainted"
    return "Fenced" if count(obj.status, "fenced") else ("Faulty" if _findings(obj) else "Healthy")


def _last_seen(obj: AnyObject) -> str:
    return max((text(one, "last") for one in _findings(obj)), default="")


NOTEBOOKS: Final = Resource("kubeflow.org", "v1", "notebooks", "Notebook", True, AnyObject)
_SERVICES: Final = Resource(
    "serving.kserve.io", "v1beta1", "inferenceservices", "InferenceService", True, AnyObject
)
_DATASET_STATE = Column("state", "state", lambda obj: text(obj.status, "phase") or "NotBound")

ALL: Final[tuple[Kind, ...]] = (
    Kind(
        "notebooks",
        NOTEBOOKS,
        (
            Column("state", "state", _notebook_state),
            Column("image", "text", _image),
            Column("gpus", "number", _gpus),
            AGE,
            Column("why", "why", _notebook_why),
        ),
        "state",
    ),
    Kind(
        "environments",
        _own("environments", "Environment"),
        (
            _spec("image", "text", "image"),
            _spec("python", "text", "python"),
            _spec("packages", "list", "packages"),
            _spec("resources", "list", "resources"),
            AGE,
        ),
    ),
    Kind(
        "datasets",
        Resource("data.fluid.io", "v1alpha1", "datasets", "Dataset", True, AnyObject),
        (
            _DATASET_STATE,
            _status("size", "text", "ufsTotal"),
            _status("cached", "text", "cacheStates", "cached"),
            _status("cachedShare", "text", "cacheStates", "cachedPercentage"),
            Column("source", "text", _mounts),
            AGE,
        ),
        "state",
    ),
    Kind(
        "services",
        _SERVICES,
        (
            _READY,
            Column("format", "text", _predictor),
            _status("url", "text", "url"),
            _spec("fewest", "number", "predictor", "minReplicas"),
            _spec("most", "number", "predictor", "maxReplicas"),
            _status("revision", "text", "components", "predictor", "latestReadyRevision"),
            AGE,
            _WHY,
        ),
        "state",
    ),
    Kind(
        "pipelines",
        _own("pipelineruns", "PipelineRun"),
        (
            Column("state", "state", lambda obj: text(obj.status, "phase") or "Pending"),
            _status("progress", "text", "progress"),
            _spec("queue", "text", "queue"),
            _status("started", "time", "startedAt"),
            _status("ended", "time", "completionTime"),
            _status("why", "why", "message"),
        ),
        "state",
    ),
    Kind(
        "models",
        _own("modelversions", "ModelVersion"),
        (
            _spec("stage", "state", "stage"),
            _spec("model", "text", "model"),
            _spec("version", "text", "version"),
            _spec("metrics", "list", "metrics"),
            _spec("source", "text", "uri"),
            _spec("run", "text", "run"),
            AGE,
        ),
        "stage",
    ),
    Kind(
        "health",
        _own("nodehealths", "NodeHealth", namespaced=False),
        (
            Column("state", "state", _fenced),
            Column("findings", "number", lambda obj: len(_findings(obj))),
            Column("worst", "why", _worst),
            _status("fenced", "list", "fenced"),
            Column("seen", "time", _last_seen),
            _status("acts", "why", "message"),
        ),
        "state",
    ),
    Kind(
        "pools",
        _own("nodepools", "NodePool", namespaced=False),
        (
            _status("nodes", "number", "nodes"),
            _status("coming", "number", "coming"),
            _status("idle", "number", "idle"),
            _spec("fewest", "number", "min"),
            _spec("most", "number", "max"),
            _status("hourly", "number", "hourlyCost"),
            AGE,
            _status("why", "why", "message"),
        ),
    ),
    Kind(
        "teams",
        _own("teams", "Team", namespaced=False),
        (
            _READY,
            Column("members", "number", lambda obj: count(obj.spec, "members")),
            _status("namespaces", "list", "namespaces"),
            _spec("guaranteed", "list", "queue", "guaranteed"),
            _spec("limit", "list", "queue", "limit"),
            _spec("network", "text", "network"),
            AGE,
            _WHY,
        ),
        "state",
    ),
    Kind(
        "prices",
        _own("pricelists", "PriceList", namespaced=False),
        (
            _spec("currency", "text", "currency"),
            Column("prices", "number", lambda obj: count(obj.spec, "prices")),
            AGE,
        ),
    ),
    Kind(
        "gangs",
        _own("gangs", "Gang"),
        (
            Column("state", "state", lambda obj: text(obj.status, "phase") or "Pending"),
            _spec("queue", "text", "queue"),
            _status("members", "number", "members"),
            _status("bound", "number", "bound"),
            _status("position", "number", "position"),
            AGE,
            _status("why", "why", "message"),
        ),
        "state",
    ),
    Kind(
        "pods",
        Resource("", "v1", "pods", "Pod", True, AnyObject),
        (
            Column("state", "state", lambda obj: text(obj.status, "phase")),
            _spec("node", "text", "nodeName"),
            Column("job", "text", lambda obj: obj.metadata.labels.get(f"{GROUP}/job", "")),
            Column(
                "gpuIndices", "text", lambda obj: obj.metadata.annotations.get(f"{GROUP}/gpus", "")
            ),
            AGE,
            _status("why", "why", "message"),
        ),
        "state",
    ),
)
KINDS: Final[Mapping[str, Kind]] = {kind.word: kind for kind in ALL}
"""The kinds by the word in their address."""

OBJECTS: Final[Mapping[str, Resource[Any]]] = {
    **{kind.word: kind.resource for kind in ALL},
    "jobs": _own("trainingjobs", "TrainingJob"),
    "queues": _own("queues", "Queue", namespaced=False),
    "nodes": Resource("", "v1", "nodes", "Node", False, AnyObject),
    "pods": Resource("", "v1", "pods", "Pod", True, AnyObject),
    "events": Resource("", "v1", "events", "Event", True, AnyObject),
}
"""Every kind whose objects can be read and written, by the word in its address."""
