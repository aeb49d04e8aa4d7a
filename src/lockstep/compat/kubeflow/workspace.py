"""Kubeflow's Workspace (Notebooks 2.0) as a Notebook, with the options of its WorkspaceKind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.names import QUEUE_LABEL
from lockstep.api.validation import Problem
from lockstep.api.wire import Json, Wire
from lockstep.compat.kubeflow.kinds import WORKSPACE_KIND
from lockstep.compat.kubeflow.notebook import NOTEBOOKS, STOPPED, Notebook, prefix
from lockstep.compat.translation import Look, Native, Refused, Translation, read

_PREFIX: Final = re.compile(r"{{-?\s*httpPathPrefix\s+[^}]*}}")
"""How a WorkspaceKind writes the path below which a workspace answers."""
_HOME: Final = "workspace-home"


class Volume(Wire, frozen=True):
    """A claim or a secret, and where it is mounted."""

    mount_path: str
    pvc_name: str = ""
    name: str = ""
    secret_name: str = ""
    default_mode: int | None = None
    read_only: bool = False


class Volumes(Wire, frozen=True):
    """What a workspace mounts beside what its kind does."""

    home: str = ""
    data: list[Volume] = []
    secrets: list[Volume] = []


class Options(Wire, frozen=True):
    """The options that were chosen."""

    image_config: str = ""
    pod_config: str = ""


class Metadata(Wire, frozen=True):
    """Labels and annotations of the pod."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Chosen(Wire, frozen=True):
    """A workspace's own part of its pod."""

    options: Options = Options()
    volumes: Volumes = Volumes()
    pod_metadata: Metadata = Metadata()


class WorkspaceSpec(Wire, frozen=True):
    """What a workspace is and whether it runs."""

    kind: str = ""
    paused: bool = False
    pod_template: Chosen = Chosen()


class Redirect(Wire, frozen=True):
    """Another option that took an option's place."""

    to: str = ""


class Option(Wire, frozen=True):
    """One choice that a kind offers."""

    id: str
    spec: Json = {}
    redirect: Redirect | None = None


class Values(Wire, frozen=True):
    """The choices of one sort."""

    values: list[Option] = []


class Offered(Wire, frozen=True):
    """All choices."""

    image_config: Values = Values()
    pod_config: Values = Values()


class Mounts(Wire, frozen=True):
    """Where volumes are mounted."""

    home: str = ""


class Template(Wire, frozen=True):
    """The pod of every workspace of a kind."""

    options: Offered = Offered()
    volume_mounts: Mounts = Mounts()
    pod_metadata: Metadata = Metadata()
    probes: dict[str, Json] = {}
    extra_env: list[Json] = []
    extra_volume_mounts: list[Json] = []
    extra_volumes: list[Json] = []
    security_context: Json | None = None
    container_security_context: Json | None = None


class KindSpec(Wire, frozen=True):
    """What a WorkspaceKind says of its pods."""

    pod_template: Template = Template()


def to_native(obj: AnyObject, look: Look) -> Translation:
    """Return a Workspace as a Notebook of its name."""
    spec = read(obj.spec, WorkspaceSpec)
    kind = look(WORKSPACE_KIND, "", spec.kind)
    if kind is None:
        raise Refused("spec.kind", spec.kind, "name a WorkspaceKind that is there")
    template = read(kind.spec, KindSpec, f"spec of WorkspaceKind {spec.kind}").pod_template
    options, meta = spec.pod_template.options, obj.metadata
    image = _option(template.options.image_config, options.image_config, "imageConfig")
    pod = _option(template.options.pod_config, options.pod_config, "podConfig")
    own, common = spec.pod_template.pod_metadata, template.pod_metadata
    described = {
        "labels": {**common.labels, **own.labels},
        "annotations": {**common.annotations, **own.annotations},
    }
    labels = {QUEUE_LABEL: meta.labels[QUEUE_LABEL]} if QUEUE_LABEL in meta.labels else {}
    made = {
        "apiVersion": NOTEBOOKS.api_version,
        "kind": NOTEBOOKS.kind,
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": labels,
            "annotations": {STOPPED: "paused" if spec.paused else None},
        },
        "spec": {
            "template": {"metadata": described, "spec": _pod(obj, spec, template, (image, pod))}
        },
    }
    return Translation((made,))


def _option(offered: Values, wanted: str, field: str) -> Json:
    """Return the spec of an option, or of the one that took its place."""
    known = {one.id: one for one in offered.values}
    at = f"spec.podTemplate.options.{field}"
    seen: set[str] = set()
    while True:
        found = known.get(wanted)
        if found is None:
            raise Refused(at, wanted, f"there are: {', '.join(known) or 'none'}")
        if found.redirect is None or not found.redirect.to:
            return found.spec
        seen.add(wanted)
        wanted = found.redirect.to
        if wanted in seen:
            raise Refused(at, wanted, "its WorkspaceKind redirects it in a circle")


def _pod(obj: AnyObject, spec: WorkspaceSpec, kind: Template, options: tuple[Json, Json]) -> Json:
    image, pod = options
    mounts, volumes = _mounted(spec.pod_template.volumes, kind.volume_mounts.home)
    ports = [{"containerPort": one["port"]} for one in image.get("ports") or []]
    container: Json = {
        "name": obj.metadata.name,
        "image": image.get("image", ""),
        "env": [_filled(one, prefix(obj.metadata)) for one in kind.extra_env],
        "volumeMounts": [*mounts, *kind.extra_volume_mounts],
        **kind.probes,
    }
    more = {
        "ports": ports,
        "imagePullPolicy": image.get("imagePullPolicy"),
        "resources": pod.get("resources"),
        "securityContext": kind.container_security_context,
    }
    container |= {key: value for key, value in more.items() if value}
    if kind.volume_mounts.home:
        container["workingDir"] = kind.volume_mounts.home
    names = ("affinity", "nodeSelector", "tolerations")
    placed = {name: pod[name] for name in names if pod.get(name)}
    if kind.security_context:
        placed["securityContext"] = kind.security_context
    return {"containers": [container], "volumes": [*volumes, *kind.extra_volumes], **placed}


def _filled(variable: Json, path: str) -> Json:
    if "value" not in variable:
        return variable
    return {**variable, "value": _PREFIX.sub(path, str(variable["value"]))}


def _mounted(volumes: Volumes, home: str) -> tuple[list[Json], list[Json]]:
    """Return the mounts and the volumes of claims and secrets."""
    mounts: list[Json] = []
    made: list[Json] = []
    if volumes.home:
        mounts.append({"name": _HOME, "mountPath": home})
        made.append({"name": _HOME, "persistentVolumeClaim": {"claimName": volumes.home}})
    for number, one in enumerate([*volumes.data, *volumes.secrets]):
        name = f"workspace-{number}"
        mounts.append({"name": name, "mountPath": one.mount_path, "readOnly": one.read_only})
        if one.secret_name:
            mode = {} if one.default_mode is None else {"defaultMode": one.default_mode}
            made.append({"name": name, "secret": {"secretName": one.secret_name, **mode}})
        else:
            claim = one.pvc_name or one.name
            made.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
    return mounts, made


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of a Workspace in Kubeflow's words."""
    made = next((one for one in natives if isinstance(one, Notebook)), None)
    spec = obj.spec if isinstance(obj.spec, dict) else {}
    if wrong:
        state, message = "Error", "; ".join(map(str, wrong))
    elif spec.get("paused"):
        state, message = "Paused", "Workspace is paused"
    elif made is not None and made.status.get("readyReplicas"):
        state, message = "Running", "Workspace is running"
    else:
        state, message = "Pending", _waiting(made)
    return {"state": state, "stateMessage": message}


def _waiting(made: Notebook | None) -> str:
    conditions = (made.status.get("conditions") or []) if made is not None else []
    told = [one.get("message", "") for one in conditions if one.get("status") == "False"]
    return next(filter(None, told), "Workspace is pending")
