"""One request, and short ways to write the commonest of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.apiserver import Answer

Json = Any
Until = Callable[[Answer], bool]
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
TABLE: Final = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PARTIAL: Final = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
PARTIAL_LIST: Final = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}


@dataclass(frozen=True)
class Ask:
    """One request. ``${name:path}`` in its texts stands for what an earlier answer held there."""

    name: str
    method: str
    path: str
    body: Json = None
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    anonymous: bool = False
    """Whether it is sent without the administrator's certificate."""
    until: Until | None = None
    """Repeat it until this is true of its answer: what controllers do takes a moment."""
    during: tuple[Ask, ...] = ()
    """Requests made while its answer, a watch, goes on."""


def status(code: int) -> Until:
    """Return the condition that an answer has this status."""
    return lambda answer: answer.status == code


def is_ending(answer: Answer) -> bool:
    """Whether an answer shows an object that is being deleted."""
    return b'"deletionTimestamp"' in answer.body


def is_counted(answer: Answer) -> bool:
    """Whether an answer shows a budget whose pods have been counted."""
    return b'"DisruptionAllowed"' in answer.body


def get(name: str, path: str, **more: Any) -> Ask:
    """Return a read."""
    return Ask(name, "GET", path, **more)


def post(name: str, path: str, body: Json = None, **more: Any) -> Ask:
    """Return a creation."""
    return Ask(name, "POST", path, body, **more)


def new(name: str, path: str, spec: Json = None, object_name: str = "x", **more: Json) -> Ask:
    """Return the creation of an object with a *spec*, where it has one, and with *more* fields."""
    body = {"metadata": {"name": object_name}, **more}
    if spec is not None:
        body["spec"] = spec
    return post(name, path, body)


def put(name: str, path: str, body: Json = None, **more: Any) -> Ask:
    """Return a replacement."""
    return Ask(name, "PUT", path, body, **more)


def delete(name: str, path: str, body: Json = None, **more: Any) -> Ask:
    """Return a deletion."""
    return Ask(name, "DELETE", path, body, **more)


def merge(name: str, path: str, body: Json, **more: Any) -> Ask:
    """Return a JSON merge patch."""
    return Ask(name, "PATCH", path, body, MERGE, **more)


def strategic(name: str, path: str, body: Json, **more: Any) -> Ask:
    """Return a strategic merge patch."""
    return Ask(name, "PATCH", path, body, STRATEGIC, **more)


def json_patch(name: str, path: str, body: Json, **more: Any) -> Ask:
    """Return a JSON patch."""
    return Ask(name, "PATCH", path, body, JSON_PATCH, **more)


def apply(name: str, path: str, body: Json, **more: Any) -> Ask:
    """Return a server-side apply."""
    return Ask(name, "PATCH", path, body, APPLY, **more)


def namespace(name: str) -> tuple[Ask, Ask]:
    """Return the creation of a namespace, and the wait until pods can be created in it."""
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    return (
        post(f"namespace {name}", "/api/v1/namespaces", {"metadata": {"name": name}}),
        get(f"account of {name}", account, until=status(200)),
    )


def core(namespace: str, plural: str) -> str:
    """Return the path of a collection of the core group."""
    return f"/api/v1/namespaces/{namespace}/{plural}"


def of(group: str, namespace: str, plural: str, version: str = "v1") -> str:
    """Return the path of a collection of another group."""
    return f"/apis/{group}/{version}/namespaces/{namespace}/{plural}"


def config_map(name: str, data: Json = None, **meta: Json) -> Json:
    """Return a ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **meta},
        "data": {"a": "1"} if data is None else data,
    }


def pod(name: str, meta: Json = None, **spec: Json) -> Json:
    """Return a pod of one container."""
    containers = [{"name": "main", "image": "busybox"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(meta or {})},
        "spec": {"containers": containers, **spec},
    }


def template(app: str = "d", **spec: Json) -> Json:
    """Return a pod template."""
    containers = [{"name": "main", "image": "busybox"}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, **spec}}


def deployment(name: str, **spec: Json) -> Json:
    """Return a Deployment."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "d"}},
            "template": template(),
            **spec,
        },
    }
