"""What the server says about itself: discovery, OpenAPI, health."""

from __future__ import annotations

from typing import Final

from tests.support.conformance.script.ask import Ask, get

AGGREGATED: Final = {
    "Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
}
GROUPS: Final = (
    "apps/v1",
    "batch/v1",
    "policy/v1",
    "autoscaling/v2",
    "autoscaling/v1",
    "rbac.authorization.k8s.io/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "networking.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
    "node.k8s.io/v1",
    "resource.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apiregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "certificates.k8s.io/v1",
    "lockstep.dev/v1alpha1",
)

SCRIPT: Final[tuple[Ask, ...]] = (
    get("discovery of the core", "/api"),
    get("discovery with a slash", "/api/"),
    get("discovery of the core's kinds", "/api/v1"),
    *(get(f"discovery of {group}", f"/apis/{group}") for group in GROUPS),
    get("discovery of a group", "/apis/apps"),
    get("discovery of all groups", "/apis"),
    get("discovery of the core at once", "/api", headers=AGGREGATED),
    get("discovery of all at once", "/apis", headers=AGGREGATED),
    get("OpenAPI index", "/openapi/v3"),
    get("OpenAPI of Lockstep", "/openapi/v3/apis/lockstep.dev/v1alpha1"),
    get("OpenAPI of leases", "/openapi/v3/apis/coordination.k8s.io/v1"),
    get("OpenAPI of nothing", "/openapi/v3/apis/nobody/v1"),
    get("readiness", "/readyz"),
    get("liveness", "/livez"),
    get("liveness, one check", "/livez/ping"),
    get("liveness, an unknown check", "/livez/nonsense"),
    get("the root", "/"),
    get("kinds' services", "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps"),
)
