"""elastic-jupyter-operator's objects as notebooks, environments and kernels.

A kernelspec is an environment: what the gateway offers under its name. The gateway itself is
Lockstep's, one for all; of a JupyterGateway its idle time counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from lockstep.api.core import AnyObject
from lockstep.api.names import QUEUE_LABEL
from lockstep.api.notebooks import ENVIRONMENTS, KERNELS, Kernel
from lockstep.api.resource import Resource
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.compat.jupyter import kinds
from lockstep.compat.jupyter.objects import (
    Container,
    GatewaySpec,
    KernelSpecSpec,
    KernelTemplateSpec,
    NotebookSpec,
    Variable,
)
from lockstep.compat.kubeflow.notebook import IMAGE, KERNELS_ANNOTATION, NOTEBOOKS, Notebook
from lockstep.compat.translation import Look, Native, Refused, Translation, read

_PYTHON: Final = ("", "python", "python3")
_STATES: Final = {"Failed": "Failed", "Running": "Running", "Parked": "Running"}


def notebook(obj: AnyObject) -> Translation:
    """Return a JupyterNotebook as a Notebook; with a gateway its kernels are pods of their own."""
    spec = read(obj.spec, NotebookSpec)
    if spec.auth:
        remedy = "leave it out: `lockstep dev open` prints the link that opens the notebook"
        raise Refused("spec.auth", None, remedy)
    pod: Json = dict((spec.template or {}).get("spec") or {})
    containers = [dict(one) for one in pod.get("containers") or []] or [{}]
    first = containers[0]
    first["name"] = obj.metadata.name
    first.setdefault("image", IMAGE)
    if spec.resources:
        first["resources"] = spec.resources
    made = _object(NOTEBOOKS, obj, {"template": {"spec": {**pod, "containers": containers}}})
    if spec.gateway is not None:
        made["metadata"]["annotations"] = {KERNELS_ANNOTATION: "remote"}
    return Translation((made,))


def kernel_spec(obj: AnyObject, look: Look) -> Translation:
    """Return a JupyterKernelSpec as an Environment of its name."""
    spec = read(obj.spec, KernelSpecSpec)
    if spec.language.lower() not in _PYTHON:
        remedy = "only Python's kernels are served: say python"
        raise Refused("spec.language", spec.language, remedy)
    container = _container(_pod(spec.template, obj.metadata.namespace, look))
    made = _environment(container, spec.image, spec.env)
    # The operator has one gateway for a namespace: the first by name, where there are several.
    gateway = look(kinds.GATEWAY, obj.metadata.namespace, "")
    if gateway is not None:
        idle = read(gateway.spec, GatewaySpec).cull_idle_timeout
        if idle:
            made["idle"] = {"after": f"{idle}s"}
    return Translation((_object(ENVIRONMENTS, obj, made),))


def kernel(obj: AnyObject) -> Translation:
    """Return a JupyterKernel as a Kernel in an Environment of its own."""
    template = obj.spec.get("template") or {}
    inner = template.get("template") or template
    container = _container(inner.get("spec") or {})
    if not container.image:
        remedy = "name the image in which the kernel runs"
        raise Refused("spec.template.template.spec.containers[0].image", None, remedy)
    environment = _object(ENVIRONMENTS, obj, _environment(container, "", []))
    return Translation((environment, _object(KERNELS, obj, {"environment": obj.metadata.name})))


def gateway(obj: AnyObject) -> Translation:
    """Return nothing: all kernels go through Lockstep's gateway."""
    read(obj.spec, GatewaySpec)
    return Translation()


def _pod(template: Json | None, namespace: str, look: Look) -> Json:
    """Return the pod spec that a kernelspec's ``template`` stands for."""
    if not template:
        return {}
    inline = template.get("template") or {}
    if inline or "spec" in template:
        return dict((inline or template).get("spec") or {})
    name = str(template.get("name") or "")
    found = look(kinds.KERNEL_TEMPLATE, namespace, name) if name else None
    if found is None:
        remedy = f"create a JupyterKernelTemplate {name} in namespace {namespace}"
        raise Refused("spec.template.name", name, remedy)
    return dict(read(found.spec, KernelTemplateSpec).template.get("spec") or {})


def _container(pod: Json) -> Container:
    first: Json = next(iter(pod.get("containers") or []), {})
    return read(first, Container, "spec.template.spec.containers[0]")


def _environment(container: Container, image: str, env: Sequence[Variable]) -> Json:
    named = {one.name: one.value for one in [*container.env, *env] if one.value_from is None}
    unread = [one.name for one in [*container.env, *env] if one.value_from is not None]
    if unread:
        raise Refused("spec.env", unread[0], "write its value: valueFrom is not read here")
    made: Json = {"image": image or container.image}
    if named:
        made["variables"] = named
    if amounts := container.resources.amounts:
        made["resources"] = amounts
    return made


def _object(res: Resource[Any], obj: AnyObject, spec: Json) -> Json:
    meta = obj.metadata
    labels = {QUEUE_LABEL: meta.labels[QUEUE_LABEL]} if QUEUE_LABEL in meta.labels else {}
    if labels and res is ENVIRONMENTS:
        spec = {**spec, "queue": labels[QUEUE_LABEL]}
    return {
        "apiVersion": res.api_version,
        "kind": res.kind,
        "metadata": {"name": meta.name, "namespace": meta.namespace, "labels": labels},
        "spec": spec,
    }


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of any of the kinds in the operator's words."""
    if wrong:
        text = "; ".join(map(str, wrong))
        return {"conditions": [{"type": "Failed", "status": "True", "message": text}]}
    for one in natives:
        if isinstance(one, Notebook):
            ready = int(one.status.get("readyReplicas") or 0)
            return {"conditions": [], "readyReplicas": ready}
        if isinstance(one, Kernel):
            return _of_kernel(one)
    if obj.kind == kinds.GATEWAY.kind:
        served = {"type": "Available", "status": "True", "reason": "ServedByLockstep"}
        return {"conditions": [served], "replicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    return {"conditions": []}


def _of_kernel(made: Kernel) -> Json:
    state = _STATES.get(made.status.phase)
    if state is None:
        return {"conditions": []}
    told = {"type": state, "status": "True", "reason": made.status.phase}
    if made.status.message:
        told["message"] = made.status.message
    return {"conditions": [told]}
