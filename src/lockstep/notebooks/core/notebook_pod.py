"""What a Kubeflow Notebook consists of: secret, service and pod, with Kubeflow's names."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from lockstep.api.core import PODS, SECRETS, SERVICES
from lockstep.api.meta import owner_reference
from lockstep.api.names import QUEUE_LABEL, SCHEDULER_NAME
from lockstep.api.wire import Json
from lockstep.compat.kubeflow.notebook import (
    KERNELS_ANNOTATION,
    NAME_LABEL,
    PORT,
    SET_LABEL,
    Notebook,
    prefix,
)
from lockstep.notebooks.core import keys
from lockstep.notebooks.core.kernel_state import Settings

DEFAULT_QUEUE: Final = "default"
PAGE_KEY: Final = "page"
"""Key of the Secret in which the token of a notebook's own server stands."""
KERNEL_WAIT: Final = 86400
"""Seconds for which a server waits for a kernel that waits for its card."""


def remote(notebook: Notebook) -> bool:
    """Return whether a notebook's kernels run in pods of their own."""
    return notebook.metadata.annotations.get(KERNELS_ANNOTATION) == "remote"


def pod_name(notebook: Notebook) -> str:
    """Return the name of a notebook's pod, which is that of a StatefulSet's first."""
    return f"{notebook.metadata.name}-0"


def secret_name(notebook: Notebook) -> str:
    """Return the name of the secret with a notebook's tokens."""
    return f"{notebook.metadata.name}-notebook"


def secret(notebook: Notebook, master: bytes, now: float) -> Json:
    """Return the tokens that the notebook's server asks for, and by which it has kernels."""
    uid, space = notebook.metadata.uid, notebook.metadata.namespace
    issued = str(int(now))
    server = keys.server_token(master, uid, issued)
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {**_owned(notebook), "name": secret_name(notebook)},
        "type": "Opaque",
        "stringData": {
            PAGE_KEY: keys.page_token(master, uid, issued),
            "server": f"{space}/{notebook.metadata.name}/{issued}/{server}",
        },
    }


def service(notebook: Notebook) -> Json:
    """Return the service by which a notebook is reached inside the cluster."""
    name = notebook.metadata.name
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {**_owned(notebook), "name": name, "labels": {NAME_LABEL: name}},
        "spec": {
            "type": "ClusterIP",
            "selector": {SET_LABEL: name},
            "ports": [{"name": f"http-{name}", "port": 80, "targetPort": PORT, "protocol": "TCP"}],
        },
    }


def pod(notebook: Notebook, settings: Settings) -> Json:
    """Return the pod of a notebook: its template with what Kubeflow adds, in a queue."""
    about = notebook.metadata
    template = notebook.spec.template
    spec = copy.deepcopy(notebook.pod_spec)
    own = template.get("metadata") or {}
    queue = about.labels.get(QUEUE_LABEL, DEFAULT_QUEUE)
    labels = {
        **about.labels,
        **(own.get("labels") or {}),
        SET_LABEL: about.name,
        NAME_LABEL: about.name,
    }
    labels.setdefault(QUEUE_LABEL, queue)
    spec.setdefault("schedulerName", SCHEDULER_NAME)
    if spec["schedulerName"] == "default-scheduler":
        spec["schedulerName"] = SCHEDULER_NAME
    for container in spec["containers"][:1]:
        _shape(container, notebook, settings)
    annotations = {
        key: text
        for key, text in {**about.annotations, **(own.get("annotations") or {})}.items()
        if "kubectl" not in key and "notebook" not in key
    }
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            **_owned(notebook),
            "name": pod_name(notebook),
            "labels": labels,
            "annotations": annotations,
        },
        "spec": spec,
    }


def _shape(container: Json, notebook: Notebook, settings: Settings) -> None:
    if not container.get("ports"):
        container["ports"] = [{"name": "notebook-port", "containerPort": PORT, "protocol": "TCP"}]
    port = container["ports"][0]["containerPort"]
    container.setdefault(
        "readinessProbe",
        {"tcpSocket": {"port": port}, "periodSeconds": 1, "failureThreshold": 1000},
    )
    own = {one.get("name") for one in container.get("env", [])}
    added = [one for one in _variables(notebook, settings) if one["name"] not in own]
    container["env"] = [*container.get("env", []), *added]


def _variables(notebook: Notebook, settings: Settings) -> Iterator[Json]:
    yield {"name": "NB_PREFIX", "value": prefix(notebook.metadata)}
    # Images that set no token of their own take this one; the console's door sends it along.
    token = {"secretKeyRef": _key(notebook, PAGE_KEY)}
    yield {"name": "JUPYTER_TOKEN", "valueFrom": token}
    if not remote(notebook) or not settings.gateway:
        return
    plain = {
        "JUPYTER_GATEWAY_URL": settings.gateway,
        "JUPYTER_GATEWAY_AUTH_SCHEME": "Bearer",
        "JUPYTER_GATEWAY_REQUEST_TIMEOUT": "60",
        "JUPYTER_GATEWAY_RETRY_MAX": "60",
        "KERNEL_LAUNCH_TIMEOUT": str(KERNEL_WAIT),
    }
    yield from ({"name": name, "value": text} for name, text in plain.items())
    token = {"secretKeyRef": _key(notebook, "server")}
    yield {"name": "JUPYTER_GATEWAY_AUTH_TOKEN", "valueFrom": token}


def _key(notebook: Notebook, name: str) -> Json:
    return {"name": secret_name(notebook), "key": name}


def _owned(notebook: Notebook) -> dict[str, Any]:
    return {
        "namespace": notebook.metadata.namespace,
        "ownerReferences": [owner_reference(notebook)],
    }
