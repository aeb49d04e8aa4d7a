"""Defaults of pods and of the structs inside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.defaults.values import values
from lockstep.apiserver.builtin.quality import quality_of_service

_POD = values(
    {"securityContext": {}},
    {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
    },
)
_TERMINATION = values(
    {},
    {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    },
)
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_READABLE = values({"defaultMode": 0o644})

# A name that is no image's is not asked for; a registry's may have capitals, unlike a path.
_IMAGE = re.compile(r"(?:[A-Za-z0-9.-]+(?::\d+)?/)?[a-z0-9][a-z0-9._/-]*(?::[\w.-]+)?(?:@\S+)?\Z")


def pod(obj: Json) -> None:
    """Fill in what only a pod itself has, not its template."""
    spec = obj.setdefault("spec", {})
    for container in _containers(spec):
        resources = container.get("resources")
        if resources and (limits := resources.get("limits")):
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
        if spec.get("hostNetwork"):
            _host_ports(container)
    spec.setdefault("enableServiceLinks", True)


def waiting(obj: Json) -> None:
    """Let a new pod be pending, with the quality of service that it asks for."""
    spec = obj["spec"]
    status: Json = {"phase": "Pending", "qosClass": quality_of_service(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": obj["metadata"].get("creationTimestamp"),
            }
        ]
    obj["status"] = status


def _containers(spec: Json) -> Iterator[Json]:
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def _host_ports(container: Json) -> None:
    for port in container.get("ports") or ():
        if not port.get("hostPort") and port.get("containerPort"):
            port["hostPort"] = port["containerPort"]


def pod_spec(spec: Json) -> None:
    """Fill in what every pod and pod template has."""
    _POD(spec)
    grace = spec.setdefault("terminationGracePeriodSeconds", 30)
    if isinstance(grace, int) and grace < 0:
        spec["terminationGracePeriodSeconds"] = 1
    # The older name of the field is kept equal to the newer one.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def pod_status(obj: Json) -> None:
    """Keep the first of a pod's addresses equal to its one address of old."""
    one, all_ = obj.get("podIP"), obj.get("podIPs")
    if one and (not all_ or all_[0].get("ip") != one):
        obj["podIPs"] = [{"ip": one}]
    elif all_ and not one:
        obj["podIP"] = all_[0].get("ip", "")


def container(obj: Json) -> None:
    """Fill in a container of any sort."""
    if not obj.get("imagePullPolicy"):
        obj["imagePullPolicy"] = _pull_policy(obj.get("image"))
    _TERMINATION(obj)


def _pull_policy(image: Any) -> str:
    """An image without a tag is the latest, and the latest is always asked for."""
    if not isinstance(image, str) or not _IMAGE.match(image):
        return "IfNotPresent"
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def volume(obj: Json) -> None:
    """Make a volume that names no source an empty directory."""
    if not any(key != "name" for key in obj):
        obj["emptyDir"] = {}
    image = obj.get("image")
    if image is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = _pull_policy(image.get("reference"))


FILLS = {
    "core.v1.Pod": pod,
    "core.v1.PodSpec": pod_spec,
    "core.v1.PodStatus": pod_status,
    "core.v1.Container": container,
    "core.v1.EphemeralContainer": container,
    "core.v1.Probe": values({}, _PROBE),
    "core.v1.HTTPGetAction": values({}, {"path": "/", "scheme": "HTTP"}),
    "core.v1.GRPCAction": values({"service": ""}),
    "core.v1.ObjectFieldSelector": values({}, {"apiVersion": "v1"}),
    "core.v1.ResourceFieldSelector": values({"divisor": "0"}),
    "core.v1.Volume": volume,
    "core.v1.ConfigMapVolumeSource": _READABLE,
    "core.v1.SecretVolumeSource": _READABLE,
    "core.v1.DownwardAPIVolumeSource": _READABLE,
    "core.v1.ProjectedVolumeSource": _READABLE,
    "core.v1.HostPathVolumeSource": values({"type": ""}),
    "core.v1.ServiceAccountTokenProjection": values({"expirationSeconds": 3600}),
}
