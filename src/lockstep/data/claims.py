"""Pods as far as their claims of volumes go."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lockstep.api.dataset_cache import DRIVER
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import JOB_LABEL, ROUTE_LABEL
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire

CLAIM_INDEX: Final = "claim"
"""Pods by the claims that they mount: ``NAMESPACE/NAME``."""


class ClaimName(Wire, frozen=True):
    """Which claim a volume stands for."""

    claim_name: str = ""


class Inline(Wire, frozen=True):
    """A volume that is written into a pod."""

    driver: str = ""
    volume_attributes: dict[str, str] = {}


class Volume(Wire, frozen=True):
    """A volume of a pod."""

    persistent_volume_claim: ClaimName | None = None
    csi: Inline | None = None


class Spec(Wire, frozen=True):
    """Where a pod runs and which volumes it has."""

    node_name: str = ""
    volumes: list[Volume] = []


class Status(Wire, frozen=True):
    """Whether it is over."""

    phase: str = ""


class ClaimingPod(Wire, frozen=True):
    """A pod, as its claims see it."""

    metadata: ObjectMeta
    spec: Spec = Spec()
    status: Status = Status()


CLAIMING_PODS: Final = Resource("", "v1", "pods", "Pod", True, ClaimingPod)


def claims_of(pod: ClaimingPod) -> Iterable[str]:
    """Yield the claims that *pod* mounts, each as ``NAMESPACE/NAME``.

    A volume that names a dataset counts as the claim of it, which has the same name.
    """
    for volume in pod.spec.volumes:
        claim, inline = volume.persistent_volume_claim, volume.csi
        if claim is not None and claim.claim_name:
            yield f"{pod.metadata.namespace}/{claim.claim_name}"
        elif inline is not None and inline.driver == DRIVER:
            yield f"{pod.metadata.namespace}/{inline.volume_attributes.get('dataset', '')}"


def job_of(pod: ClaimingPod) -> str:
    """Return the job that *pod* is of; its own name where it is of none."""
    labels = pod.metadata.labels
    return labels.get(JOB_LABEL) or labels.get(ROUTE_LABEL) or pod.metadata.name
