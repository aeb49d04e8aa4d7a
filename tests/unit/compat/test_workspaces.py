"""Kubeflow's Workspaces and elastic-jupyter-operator's kinds as notebooks and kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lockstep.api.core import AnyObject
from lockstep.api.notebooks import Environment, Kernel
from lockstep.api.wire import convert
from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.jupyter import kinds as jupyter
from lockstep.compat.jupyter import translate
from lockstep.compat.kubeflow import kinds, workspace
from lockstep.compat.kubeflow.notebook import Notebook
from lockstep.compat.registry import sources
from lockstep.compat.translation import Look, Refused, Source, nothing

Json = dict[str, Any]

KIND: Json = {
    "podTemplate": {
        "podMetadata": {"labels": {"team": "lab", "own": "kind"}},
        "probes": {"livenessProbe": {"httpGet": {"path": "/api", "port": 8888}}},
        "volumeMounts": {"home": "/home/jovyan"},
        "extraEnv": [{"name": "NB_PREFIX", "value": "{{ httpPathPrefix 'jupyterlab' }}"}],
        "extraVolumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}],
        "extraVolumeMounts": [{"name": "dshm", "mountPath": "/shared"}],
        "options": {
            "imageConfig": {
                "values": [
                    {"id": "old", "spec": {"image": "lab:1"}, "redirect": {"to": "new"}},
                    {"id": "new", "spec": {"image": "lab:2", "ports": [{"port": 8888}]}},
                    {"id": "a", "spec": {}, "redirect": {"to": "b"}},
                    {"id": "b", "spec": {}, "redirect": {"to": "a"}},
                ]
            },
            "podConfig": {
                "values": [
                    {
                        "id": "gpu",
                        "spec": {
                            "resources": {"limits": {"nvidia.com/gpu": 1}},
                            "nodeSelector": {"disk": "fast"},
                        },
                    }
                ]
            },
        },
    }
}


def obj(kind: ForeignKind, spec: Json, name: str = "ana", labels: Json | None = None) -> AnyObject:
    meta = {"name": name, "namespace": "lab", "uid": "u", "labels": labels or {}}
    version = f"{kind.group}/{kind.version}"
    tree = {"metadata": meta, "spec": spec, "apiVersion": version, "kind": kind.kind}
    return convert(tree, AnyObject)


def looking(*objects: AnyObject) -> Look:
    def look(kind: ForeignKind, namespace: str, name: str) -> AnyObject | None:
        of = [one for one in objects if one.kind == kind.kind]
        return next((one for one in of if name in ("", one.metadata.name)), None)

    return look


def chosen(image: str = "new", pod: str = "gpu", **more: Any) -> Json:
    volumes = {
        "home": "ana-home",
        "data": [{"pvcName": "sets", "mountPath": "/data", "readOnly": True}],
        "secrets": [{"secretName": "keys", "mountPath": "/keys"}],
    }
    options = {"imageConfig": image, "podConfig": pod}
    own = {"labels": {"own": "workspace"}}
    template = {"options": options, "volumes": volumes, "podMetadata": own}
    return {"kind": "jupyterlab", "podTemplate": template, **more}


def made(spec: Json) -> Json:
    look = looking(obj(kinds.WORKSPACE_KIND, KIND, "jupyterlab"))
    (one,) = workspace.to_native(obj(kinds.WORKSPACE, spec), look).objects
    return one


def test_a_workspace_has_what_its_kind_and_its_options_say() -> None:
    template = made(chosen())["spec"]["template"]
    assert template["metadata"]["labels"] == {"team": "lab", "own": "workspace"}
    (container,) = template["spec"]["containers"]
    assert container["image"] == "lab:2"
    assert container["env"] == [{"name": "NB_PREFIX", "value": "/notebook/lab/ana"}]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    assert container["livenessProbe"]["httpGet"]["path"] == "/api"
    mounted = [one["mountPath"] for one in container["volumeMounts"]]
    assert mounted == ["/home/jovyan", "/data", "/keys", "/shared"]
    sources_of = [set(one) - {"name"} for one in template["spec"]["volumes"]]
    claim = {"persistentVolumeClaim"}
    assert sources_of == [claim, claim, {"secret"}, {"emptyDir"}]
    assert template["spec"]["nodeSelector"] == {"disk": "fast"}
    assert container["name"] == "ana"


def test_an_option_that_was_replaced_is_the_other_one() -> None:
    (container,) = made(chosen("old"))["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "lab:2"


@pytest.mark.parametrize("paused", [True, False])
def test_a_paused_workspace_is_a_stopped_notebook(paused: bool) -> None:
    told = made(chosen(paused=paused))["metadata"]["annotations"]["kubeflow-resource-stopped"]
    assert bool(told) == paused


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (chosen("none"), "spec.podTemplate.options.imageConfig"),
        (chosen("a"), "spec.podTemplate.options.imageConfig"),
        (chosen(pod="none"), "spec.podTemplate.options.podConfig"),
        (chosen() | {"kind": "rstudio"}, "spec.kind"),
        (chosen() | {"paused": "yes"}, "spec.paused"),
    ],
)
def test_a_workspace_that_cannot_be_is_refused_by_field(spec: Json, field: str) -> None:
    look = looking(obj(kinds.WORKSPACE_KIND, KIND, "jupyterlab"))
    if spec["kind"] == "rstudio":
        look = nothing
    with pytest.raises(Refused) as refused:
        workspace.to_native(obj(kinds.WORKSPACE, spec), look)
    assert refused.value.problem.field == field


@pytest.mark.parametrize(
    ("spec", "status", "state"),
    [
        ({}, None, "Pending"),
        ({}, {"readyReplicas": 1}, "Running"),
        ({"paused": True}, {"readyReplicas": 0}, "Paused"),
    ],
)
def test_a_workspace_says_how_it_is(spec: Json, status: Json | None, state: str) -> None:
    there = [] if status is None else [convert({"metadata": {}, "status": status}, Notebook)]
    told = workspace.status_of(obj(kinds.WORKSPACE, spec), there, [])
    assert told["state"] == state


def translated(source: Source, one: AnyObject, look: Look = nothing) -> Sequence[Json]:
    found = source.to_native(one, look)
    assert not found.refusals, found.refusals
    return found.objects


NOTEBOOK, GATEWAY, SPEC, KERNEL = (s for s in sources() if s.kind.group == "kubeflow.tkestack.io")
REQUESTS = {"resources": {"requests": {"cpu": 1}, "limits": {"nvidia.com/gpu": 1}}}
POD = {"spec": {"containers": [{"name": "kernel", "image": "own", **REQUESTS}]}}


@pytest.mark.parametrize(
    ("spec", "remote"),
    [({}, False), ({"gateway": {"name": "shared", "namespace": "lab"}}, True)],
)
def test_a_notebook_with_a_gateway_has_remote_kernels(spec: Json, remote: bool) -> None:
    (one,) = translated(NOTEBOOK, obj(jupyter.NOTEBOOK, spec, labels={"lockstep.dev/queue": "q"}))
    told = one["metadata"].get("annotations", {})
    assert (told.get("lockstep.dev/kernels") == "remote") == remote
    assert one["metadata"]["labels"] == {"lockstep.dev/queue": "q"}
    assert "jupyter" in convert(one, Notebook).pod_spec["containers"][0]["image"]


def test_a_kernelspec_is_an_environment_with_its_gateways_idle_time() -> None:
    spec = {
        "language": "Python",
        "displayName": "GPU",
        "image": "kernel:1",
        "env": [{"name": "A", "value": "1"}],
        "template": {"namespace": "lab", "name": "big"},
        "command": ["kubeflow-launcher"],
    }
    look = looking(
        obj(jupyter.KERNEL_TEMPLATE, {"template": POD}, "big"),
        obj(jupyter.GATEWAY, {"cullIdleTimeout": 600, "kernels": ["ana"]}, "shared"),
    )
    (one,) = translated(SPEC, obj(jupyter.KERNEL_SPEC, spec), look)
    environment = convert(one, Environment).spec
    assert (environment.image, environment.variables) == ("kernel:1", {"A": "1"})
    amounts = {name: str(amount) for name, amount in environment.resources.items()}
    assert amounts == {"cpu": "1", "nvidia.com/gpu": "1"}
    assert environment.idle.after == "600s"


def test_a_kernel_runs_in_an_environment_of_its_own() -> None:
    spec = {"template": {"metadata": {"app": "x"}, "template": POD}}
    environment, kernel = translated(KERNEL, obj(jupyter.KERNEL, spec))
    assert convert(environment, Environment).spec.image == "own"
    assert convert(kernel, Kernel).spec.environment == "ana"


@pytest.mark.parametrize(
    ("call", "spec", "field"),
    [
        (translate.notebook, {"size": 1}, "spec.size"),
        (translate.kernel, {}, "spec.template.template.spec.containers[0].image"),
        (lambda one: translate.kernel_spec(one, nothing), {"language": "R"}, "spec.language"),
        (
            lambda one: translate.kernel_spec(one, nothing),
            {"template": {"name": "gone"}},
            "spec.template.name",
        ),
        (
            lambda one: translate.kernel_spec(one, nothing),
            {"env": [{"name": "S", "valueFrom": {}}]},
            "spec.env",
        ),
    ],
)
def test_what_is_not_served_is_refused_by_field(
    call: Callable[[AnyObject], Any], spec: Json, field: str
) -> None:
    with pytest.raises(Refused) as refused:
        call(obj(jupyter.KERNEL_SPEC, spec))
    assert refused.value.problem.field == field


@pytest.mark.parametrize(
    ("phase", "state"),
    [("Waiting", None), ("Running", "Running"), ("Parked", "Running"), ("Failed", "Failed")],
)
def test_a_kernel_says_how_it_is(phase: str, state: str | None) -> None:
    there = convert({"metadata": {}, "status": {"phase": phase, "message": "m"}}, Kernel)
    told = translate.status_of(obj(jupyter.KERNEL, {}), [there], [])["conditions"]
    assert [one["type"] for one in told] == ([] if state is None else [state])
