"""What each part of Lockstep may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lockstep.api.names import (
    CONTROLLERS_LEASE,
    GROUP,
    RECORDER_LEASE,
    SCHEDULER_LEASE,
    SYSTEM_NAMESPACE,
)
from lockstep.api.permissions.capabilities import (
    DATA,
    HEALTH,
    MASTER_SECRET,
    NOTEBOOKS,
    PIPELINES,
    POOLS,
    SERVICES,
    TEAMS,
)
from lockstep.api.permissions.foreign import foreign
from lockstep.api.permissions.rules import FOLLOW, METRICS, OWN, Permissions, Rules, rule


def _lead(name: str) -> dict[str, Rules]:
    # RBAC cannot tell by name what is about to be created.
    rules = (
        rule("coordination.k8s.io", "leases", "create"),
        rule("coordination.k8s.io", "leases", "get", "patch", names=name),
    )
    return {OWN: rules}


_RECORD_EVENTS: Final = rule("", "events", "create", "patch")
_OWN_KINDS: Final = rule(
    "apiextensions.k8s.io",
    "customresourcedefinitions",
    "get",
    names=" ".join(
        f"{plural}.{GROUP}"
        for plural in (
            "datasetcaches",
            "deviceusages",
            "environments",
            "gangs",
            "healthpolicies",
            "kernels",
            "modelversions",
            "networkchecks",
            "nodehealths",
            "nodepolicies",
            "nodepools",
            "pipelineruns",
            "pipelinetriggers",
            "pricelists",
            "queues",
            "routers",
            "routes",
            "teams",
            "topologies",
            "trainingjobs",
            "usagequeries",
        )
    ),
)
"""To tell that a definition is older than the program."""
_SETS: Final = ("deployments", "replicasets", "statefulsets", "daemonsets")
_INSTALL: Final = (
    rule("apiextensions.k8s.io", "customresourcedefinitions", "create", "patch"),
    rule("", "namespaces", "create"),
)
_WORKLOADS: Final[Rules] = (
    rule("apps", "deployments statefulsets daemonsets", "patch", *FOLLOW),
    rule("apps", "replicasets", "create", "delete", "patch", *FOLLOW),
    rule("apps", "controllerrevisions", "patch"),
    rule("apps", "/status ".join(_SETS) + "/status", "patch"),
    rule("apps", "/finalizers ".join(_SETS) + "/finalizers", "update"),
    rule("batch", "cronjobs", *FOLLOW),
    rule("batch", "jobs", "create", "delete"),
    rule("batch", "cronjobs/status", "patch"),
    rule("batch", "cronjobs/finalizers", "update"),
    rule("", "pods", "patch"),
    rule("", "persistentvolumeclaims", "create", "get", "patch"),
    rule("storage.k8s.io", "storageclasses", "create"),
)
"""What Kubernetes' own workloads take where no kube-controller-manager serves them."""
_ANSWER_USAGE: Final = (
    rule(GROUP, "usagequeries", "delete", *FOLLOW),
    rule(GROUP, "usagequeries/status", "patch"),
)
"""Questions of users about their use of GPUs, which are answered in their status."""
_SIMULATED: Final = (
    rule("", "nodes", "create", "get", "patch", *FOLLOW),
    rule("", "nodes/status pods/status", "patch"),
    rule("", "pods", "delete", *FOLLOW),
    rule("", "namespaces", "get", names="kube-node-lease"),
    rule(GROUP, "nodehealths", "create", "get", "patch", *FOLLOW),
)
_NODE_LEASES: Final = {
    "kube-node-lease": (rule("coordination.k8s.io", "leases", "create", "delete", "patch"),),
}

PERMISSIONS: Final[Mapping[str, Permissions]] = {
    "scheduler": Permissions(
        cluster=(
            rule("", "pods", "delete", "get", *FOLLOW),
            rule("", "pods/binding", "create"),
            rule("", "pods/status", "patch"),
            # By the labels of its namespace a workload may use a queue.
            rule("", "nodes namespaces", *FOLLOW),
            rule("resource.k8s.io", "resourceslices deviceclasses", *FOLLOW),
            rule("resource.k8s.io", "resourceclaims", "get", "patch", *FOLLOW),
            rule("resource.k8s.io", "resourceclaims/status", "patch"),
            rule("resource.k8s.io", "resourceclaims/binding", "patch", "update"),
            rule(GROUP, "gangs queues topologies nodepolicies", *FOLLOW),
            rule(GROUP, "gangs/status queues/status", "patch"),
            rule("scheduling.k8s.io", "priorityclasses", *FOLLOW),
            rule("policy", "poddisruptionbudgets", *FOLLOW),
            _OWN_KINDS,
            rule("topology.volcano.sh", "hypernodes", *FOLLOW),
            _RECORD_EVENTS,
        ),
        namespaced=_lead(SCHEDULER_LEASE),
        embedded=_INSTALL,
        serves=True,
    ),
    "controllers": Permissions(
        cluster=(
            rule(GROUP, "trainingjobs", "create", "delete", "get", "patch", *FOLLOW),
            rule(GROUP, "trainingjobs/status", "patch"),
            rule(GROUP, "trainingjobs/finalizers", "update"),
            rule(GROUP, "gangs", "create", "delete", "get", "patch", *FOLLOW),
            rule(GROUP, "gangs/status", "patch"),
            rule("", "pods", "create", "delete", "get", *FOLLOW),
            rule("", "configmaps", "create", "get", "patch", *FOLLOW),
            rule("", "secrets", "create", "get", "patch"),
            rule("", "services", "create", "get", "patch", *FOLLOW),
            # Leases and world as a job's launchers use them: a role can only hand on what its
            # maker may do.
            rule("coordination.k8s.io", "leases", "create", "get", "patch", *FOLLOW),
            rule("rbac.authorization.k8s.io", "roles", "create", "get", "patch", *FOLLOW),
            rule("rbac.authorization.k8s.io", "rolebindings", "create", "get", *FOLLOW),
            *SERVICES,
            *NOTEBOOKS,
            *foreign(),
            rule("", "events", "create", "list", "patch"),
            *TEAMS,
            *DATA,
            *HEALTH,
            *POOLS,
            *PIPELINES,
            # It bears the last address that gangs were given on each rail.
            rule(GROUP, "topologies", "patch"),
            _OWN_KINDS,
        ),
        namespaced=_lead(CONTROLLERS_LEASE),
        # There they keep the records of usage, too, and artefacts in directories by namespace.
        embedded=(*_INSTALL, *_WORKLOADS, *_ANSWER_USAGE, rule("", "namespaces", "get")),
        serves=True,
    ),
    "recorder": Permissions(
        cluster=(
            # It lets gangs go once their use is on record, and holds those over their budget.
            rule(GROUP, "gangs", "patch", *FOLLOW),
            rule(GROUP, "pricelists teams trainingjobs", *FOLLOW),
            *_ANSWER_USAGE,
            # A namespace made again is told nothing of the one before it.
            rule("", "pods nodes namespaces", *FOLLOW),
            _OWN_KINDS,
        ),
        namespaced=_lead(RECORDER_LEASE),
        serves=True,
    ),
    "router": Permissions(
        cluster=(
            rule(GROUP, "routes", *FOLLOW),
            rule("", "pods", *FOLLOW),
            _OWN_KINDS,
        ),
        namespaced={
            SYSTEM_NAMESPACE: (
                rule(GROUP, "routers", "create", "delete", "patch"),
                rule(GROUP, "routers/status", "patch"),
            )
        },
        embedded=_INSTALL,
    ),
    "gateway": Permissions(
        cluster=(
            rule(GROUP, "kernels", "create", "delete", "patch", *FOLLOW),
            rule(GROUP, "environments", *FOLLOW),
            # By them it knows the servers of notebooks.
            rule("kubeflow.org", "notebooks", *FOLLOW),
            rule("", "pods", *FOLLOW),
            *METRICS,
            _OWN_KINDS,
        ),
        namespaced={SYSTEM_NAMESPACE: (rule("", "secrets", "get", names=MASTER_SECRET),)},
        embedded=_INSTALL,
    ),
    "admission": Permissions(
        cluster=(
            rule("", "nodes", *FOLLOW),
            rule(
                "admissionregistration.k8s.io",
                "mutatingwebhookconfigurations",
                "get",
                "patch",
                names="lockstep-shares",
            ),
        ),
        namespaced={
            OWN: (
                rule("", "configmaps", *FOLLOW, names="gpu-sharing"),
                rule("", "secrets", "create"),
                # Its certificate, which it renews.
                rule("", "secrets", "get", "patch", names="lockstep-admission"),
            )
        },
    ),
    "simulate-nodes": Permissions(
        cluster=_SIMULATED,
        namespaced=_NODE_LEASES,
        embedded=(rule("", "namespaces", "create"),),
    ),
    "process-node": Permissions(
        cluster=(
            rule("", "nodes", "create", "delete", "get", "patch", *FOLLOW),
            rule("", "nodes/status pods/status", "patch"),
            rule("", "pods", "delete", "get", "patch", *FOLLOW),
            rule("", "configmaps secrets services endpoints", "get", *FOLLOW),
            rule("", "persistentvolumeclaims persistentvolumes serviceaccounts namespaces", "get"),
            rule("", "serviceaccounts/token", "create"),
            rule(GROUP, "datasetcaches", "get", *FOLLOW),
            _RECORD_EVENTS,
            *METRICS,
        ),
        namespaced={
            "kube-node-lease": (
                rule("coordination.k8s.io", "leases", "create", "delete", "get", "patch"),
            )
        },
        embedded=(rule("", "namespaces", "create"),),
    ),
    "data-cache": Permissions(
        cluster=(
            rule(GROUP, "datasetcaches", *FOLLOW),
            rule(GROUP, "datasetcaches/status", "patch"),
            rule("", "secrets", "get"),
            # Of a volume written into a pod, which names a dataset: whose dataset that shows.
            rule("", "persistentvolumes", "get"),
            # It says that its node can keep datasets.
            rule("", "nodes", "patch"),
            _RECORD_EVENTS,
        ),
        serves=True,
        on_nodes=True,
    ),
    "console": Permissions(
        cluster=(
            rule(GROUP, "trainingjobs gangs queues topologies deviceusages", *FOLLOW),
            rule(GROUP, "nodehealths nodepools pricelists environments teams", *FOLLOW),
            rule(GROUP, "pipelineruns modelversions", *FOLLOW),
            rule("serving.kserve.io", "inferenceservices", *FOLLOW),
            rule("data.fluid.io", "datasets", *FOLLOW),
            rule("kubeflow.org", "notebooks", *FOLLOW),
            rule("", "pods nodes events", *FOLLOW),
            # What launchers report of their ranks.
            rule("coordination.k8s.io", "leases", *FOLLOW),
        ),
    ),
    "agent": Permissions(
        cluster=(
            rule("", "nodes", "get", "patch", *FOLLOW),
            rule("", "nodes/status", "patch"),
            rule("", "pods", "patch", *FOLLOW),
            rule("resource.k8s.io", "resourceslices", "create", "delete", "patch", *FOLLOW),
            rule("resource.k8s.io", "deviceclasses", "create"),
            rule("resource.k8s.io", "resourceclaims", "get"),
            rule(GROUP, "deviceusages", "create", "patch"),
            rule(GROUP, "nodehealths", "create", "get", "patch", *FOLLOW),
            rule(GROUP, "networkchecks", *FOLLOW),
            rule(GROUP, "networkchecks/status", "patch"),
            _RECORD_EVENTS,
        ),
        namespaced={
            SYSTEM_NAMESPACE: (rule("", "configmaps", *FOLLOW, names="lockstep-device-files"),),
            # What the SR-IOV and the shared RDMA device plugins are told.
            "kube-system": (rule("", "configmaps", *FOLLOW, names="sriovdp-config rdma-devices"),),
        },
        serves=True,
        on_nodes=True,
    ),
}
"""By the name of the command that starts the part."""
