"""In what the resources differ from each other when they are replaced and deleted."""

from __future__ import annotations

from typing import Final

CREATED_BY_UPDATE: Final = frozenset(
    {
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "endpoints",
        "events",
        "leases.coordination.k8s.io",
        "limitranges",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "runtimeclasses.node.k8s.io",
        "services",
    }
)
"""A PUT to a name that is not there creates the object."""

REPLACED_BY_VERSION: Final = frozenset(
    {
        "apiservices.apiregistration.k8s.io",
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "leases.coordination.k8s.io",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "poddisruptionbudgets.policy",
        "runtimeclasses.node.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
"""A replacement must name the version that it replaces, as for every custom resource."""

RETURNED_WHEN_DELETED: Final = frozenset(
    {
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "deviceclasses.resource.k8s.io",
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
        "resourcequotas",
        "resourceslices.resource.k8s.io",
        "serviceaccounts",
        "services",
        "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
        "volumeattributesclasses.storage.k8s.io",
    }
)
"""A deletion is answered with the object instead of a Status."""

ORPHANING: Final = frozenset({"jobs.batch", "replicationcontrollers"})
"""What they own stays unless a deletion asks for something else."""

UNOWNED: Final = frozenset({"events"})
"""They never own anything, so a deletion's propagation means nothing."""
