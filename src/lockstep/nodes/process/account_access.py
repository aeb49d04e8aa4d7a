"""What pods find of their service account by default: its token, the server's CA, the namespace.

A kube-apiserver adds such a volume on admission; here the node does, so that pods stay small.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from lockstep.api.core import ConfigMap
from lockstep.api.meta import ObjectMeta
from lockstep.kube.locate import SERVICE_ACCOUNT
from lockstep.nodes.process.environment import ROOT_CA
from lockstep.nodes.process.spec import (
    ConfigMapVolume,
    Container,
    DownwardFile,
    DownwardVolume,
    FieldRef,
    Pod,
    ProjectedVolume,
    Projection,
    TokenProjection,
    Volume,
    VolumeMount,
)
from lockstep.nodes.process.volume_store import ACCESS

DEFAULT: Final = TokenProjection(path="token", expiration_seconds=3607)
"""The token that a pod gets where it asks for none, with the life that Kubernetes gives it."""
_PLACE: Final = str(SERVICE_ACCOUNT)
_NAMESPACE: Final = DownwardFile("namespace", FieldRef(field_path="metadata.namespace"))
_VOLUME: Final = Volume(
    ACCESS,
    projected=ProjectedVolume(
        [
            Projection(service_account_token=DEFAULT),
            Projection(config_map=ConfigMapVolume(name=ROOT_CA)),
            Projection(downward_api=DownwardVolume([_NAMESPACE])),
        ]
    ),
)
_MOUNT: Final = VolumeMount(_VOLUME.name, _PLACE, read_only=True)


def with_access(pod: Pod) -> Pod:
    """Return *pod* with its service account mounted where Kubernetes mounts it.

    Containers that have something there keep it; a pod that wants no token gets none.
    """
    spec = pod.spec
    if spec.automount_service_account_token is False:
        return pod
    if any(one.name == _VOLUME.name for one in spec.volumes):
        return pod
    containers, first = _mounted(spec.containers), _mounted(spec.init_containers)
    if containers == spec.containers and first == spec.init_containers:
        return pod
    changed = msgspec.structs.replace(
        spec, containers=containers, init_containers=first, volumes=[*spec.volumes, _VOLUME]
    )
    return msgspec.structs.replace(pod, spec=changed)


def _mounted(containers: Iterable[Container]) -> list[Container]:
    return [
        one
        if any(mount.mount_path.rstrip("/") == _PLACE for mount in one.volume_mounts)
        else msgspec.structs.replace(one, volume_mounts=[*one.volume_mounts, _MOUNT])
        for one in containers
    ]


def root_ca(ca: bytes | None) -> ConfigMap:
    """Return the ConfigMap of the authority that signed the server's certificate."""
    text = (ca or b"").decode()
    return ConfigMap(metadata=ObjectMeta(name=ROOT_CA), data={"ca.crt": text} if text else {})
