"""Why tests of Kubernetes fail on the embedded server, and which are not run at all."""

from __future__ import annotations

from typing import Final

NOT_AIMED: Final = (
    "AdmissionWebhook",
    "AdmissionPolicy",
    "CustomResourceConversionWebhook",
    "Aggregator",
    "Aggregated APIServer",
    "API priority and fairness",
    "kube-apiserver identity",
    "CoordinatedLeaderElection",
    "StorageVersion resources",
    "CBOR",
)
"""Admission by webhook and policy, aggregation and flow control are not aimed at."""

_OPENAPI_2: Final = "meant: OpenAPI v2 describes no custom kinds; kubectl and client-go read v3"
CAUSES: Final[dict[str, str]] = {
    "CustomResourcePublishOpenAPI": _OPENAPI_2,
    "exceeds the estimated cost limit": (
        "meant: what a rule costs is bounded when it runs (60 ms of processor time), not estimated "
        "when it is defined"
    ),
    "custom resource defaulting for requests and from storage": (
        "fault: a default that is added to a definition reaches objects when they are next "
        "written, not when they are read"
    ),
    "volume attributes class": "meant: VolumeAttributesClasses are not served",
    "life of a ResourceClaim": (
        "fault: a quota counts ResourceClaims, and not the devices that they ask for"
    ),
    "namespace deletion should delete pod first": (
        "fault: all objects of a namespace are deleted at once, pods not before others, and no "
        "condition says what is left"
    ),
}
"""By a part of the test's name."""


def cause_of(name: str) -> str | None:
    """Return why the test called *name* fails, where that is known."""
    return next((cause for part, cause in CAUSES.items() if part in name), None)
