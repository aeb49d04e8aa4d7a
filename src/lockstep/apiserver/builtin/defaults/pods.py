"""Defaults of pods and of the structs inside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lockstep.apiserver.builtin.quality import quality_of_service

Json = dict[str, Any]

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
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    spec.setdefault("securityContext", {})
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
    if not obj.get("terminationMessagePath"):
        obj["terminationMessagePath"] = "/dev/termination-log"
    if not obj.get("terminationMessagePolicy"):
        obj["terminationMessagePolicy"] = "File"


def _pull_policy(image: Any) -> str:
    """An image without a tag is the latest, and the latest is always asked for."""
    if not isinstance(image, str) or not _IMAGE.match(image):
        return "IfNotPresent"
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def probe(obj: Json) -> None:
    """Fill in how often and how long a probe tries."""
    for name, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if not obj.get(name):
            obj[name] = value


def http_get(obj: Json) -> None:
    """Fill in where an HTTP probe or hook asks."""
    if not obj.get("path"):
        obj["path"] = "/"
    if not obj.get("scheme"):
        obj["scheme"] = "HTTP"


def grpc(obj: Json) -> None:
    """Name the gRPC service that a probe asks for: the server as a whole."""
    obj.setdefault("service", "")


def field_reference(obj: Json) -> None:
    """Say of which version the paths are."""
    if not obj.get("apiVersion"):
        obj["apiVersion"] = "v1"


def resource_reference(obj: Json) -> None:
    """Say that a resource is shown in its plain unit."""
    obj.setdefault("divisor", "0")


def volume(obj: Json) -> None:
    """Make a volume that names no source an empty directory."""
    if not any(key != "name" for key in obj):
        obj["emptyDir"] = {}
    image = obj.get("image")
    if image is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = _pull_policy(image.get("reference"))


def readable_files(obj: Json) -> None:
    """Let the files of a projected volume be read by all."""
    obj.setdefault("defaultMode", 0o644)


def host_path(obj: Json) -> None:
    """Say that the host's path is not checked."""
    obj.setdefault("type", "")


def token_projection(obj: Json) -> None:
    """Let a projected token live for an hour."""
    obj.setdefault("expirationSeconds", 3600)


FILLS = {
    "core.v1.Pod": pod,
    "core.v1.PodSpec": pod_spec,
    "core.v1.PodStatus": pod_status,
    "core.v1.Container": container,
    "core.v1.EphemeralContainer": container,
    "core.v1.Probe": probe,
    "core.v1.HTTPGetAction": http_get,
    "core.v1.GRPCAction": grpc,
    "core.v1.ObjectFieldSelector": field_reference,
    "core.v1.ResourceFieldSelector": resource_reference,
    "core.v1.Volume": volume,
    "core.v1.ConfigMapVolumeSource": readable_files,
    "core.v1.SecretVolumeSource": readable_files,
    "core.v1.DownwardAPIVolumeSource": readable_files,
    "core.v1.ProjectedVolumeSource": readable_files,
    "core.v1.HostPathVolumeSource": host_path,
    "core.v1.ServiceAccountTokenProjection": token_projection,
}
