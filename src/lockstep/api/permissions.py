"""What each part of Lockstep may do, in one table.

The embedded API server's roles and the Helm chart's are both made from it. A test runs the parts
with these rights alone and holds the requests that they made against it, so that nothing is missing
here and nothing is granted for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lockstep.api.names import CONTROLLERS_LEASE, GROUP, SCHEDULER_LEASE, SYSTEM_NAMESPACE

Json = dict[str, Any]
Rules = tuple[Json, ...]

OWN: Final = "own"


def rule(groups: str | tuple[str, ...], resources: str, *verbs: str, names: str = "") -> Json:
    """Return an RBAC rule; resources and names of objects are separated by spaces."""
    listed = [groups] if isinstance(groups, str) else list(groups)
    found: Json = {"apiGroups": listed, "resources": resources.split(), "verbs": list(verbs)}
    if names:
        found["resourceNames"] = names.split()
    return found


@dataclass(frozen=True, slots=True)
class Permissions:
    """What one part may do."""

    cluster: Rules
    """In every namespace, and about what has none."""
    namespaced: Mapping[str, Rules] = field(default_factory=dict)
    """By namespace; ``OWN`` is the one that it runs in on a cluster."""
    embedded: Rules = ()
    """Beyond that on an embedded server, where nobody installs anything beforehand."""
    serves: bool = False
    """Whether it serves metrics."""

    def on_embedded(self) -> list[Json]:
        """Return the rules on an embedded server, which gives each part one cluster role."""
        scoped = (one for rules in self.namespaced.values() for one in rules)
        return [*self.cluster, *scoped, *self.embedded, *(METRICS if self.serves else ())]


def _lead(name: str) -> dict[str, Rules]:
    # RBAC cannot tell by name what is about to be created.
    rules = (
        rule("coordination.k8s.io", "leases", "create"),
        rule("coordination.k8s.io", "leases", "get", "patch", names=name),
    )
    return {OWN: rules}


_FOLLOW: Final = ("list", "watch")
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
    rule("apps", "deployments statefulsets daemonsets", "patch", *_FOLLOW),
    rule("apps", "replicasets", "create", "delete", "patch", *_FOLLOW),
    rule("apps", "controllerrevisions", "patch"),
    rule("apps", "/status ".join(_SETS) + "/status", "patch"),
    rule("apps", "/finalizers ".join(_SETS) + "/finalizers", "update"),
    rule("batch", "cronjobs", *_FOLLOW),
    rule("batch", "jobs", "create", "delete"),
    rule("batch", "cronjobs/status", "patch"),
    rule("batch", "cronjobs/finalizers", "update"),
    rule("", "pods", "patch"),
    rule("", "persistentvolumeclaims", "create"),
)
"""What Kubernetes' own workloads take where no kube-controller-manager serves them."""
_SIMULATED: Final = (
    rule("", "nodes", "create", "get", "patch", *_FOLLOW),
    rule("", "nodes/status pods/status", "patch"),
    rule("", "pods", "delete", *_FOLLOW),
    rule("", "namespaces", "get", names="kube-node-lease"),
    rule(GROUP, "nodehealths", "create", "get", "patch", *_FOLLOW),
)
_NODE_LEASES: Final = {
    "kube-node-lease": (rule("coordination.k8s.io", "leases", "create", "delete", "patch"),),
}

METRICS: Final[Rules] = (
    rule("authentication.k8s.io", "tokenreviews", "create"),
    rule("authorization.k8s.io", "subjectaccessreviews", "create"),
)
"""What it takes to serve metrics: asking who scrapes, and whether they may."""

_TEAMS: Final[Rules] = (
    rule(GROUP, "teams", "create", "patch", *_FOLLOW),  # of Kubeflow's profiles
    rule(GROUP, "teams/status", "patch"),
    rule("kubeflow.org", "profiles", *_FOLLOW),
    rule("kubeflow.org", "profiles/status", "patch"),
    rule(GROUP, "queues", "create", "delete", "patch", *_FOLLOW),
    rule("", "namespaces", "create", "patch", *_FOLLOW),
    rule("", "resourcequotas limitranges", "create", "delete", "patch", *_FOLLOW),
    rule("networking.k8s.io", "networkpolicies", "create", "delete", "patch", *_FOLLOW),
    rule("rbac.authorization.k8s.io", "rolebindings", "create", "delete", "patch", *_FOLLOW),
    # It gives members these roles without having their rights itself, and gives no others.
    rule("rbac.authorization.k8s.io", "clusterroles", "bind", names="admin edit view"),
    # An owner that blocks nothing still takes the right to say so on some servers.
    rule(GROUP, "teams/finalizers", "update"),
)

_POOLS: Final[Rules] = (
    rule(GROUP, "nodepools pricelists nodepolicies topologies", *_FOLLOW),
    rule(GROUP, "nodepools/status", "patch"),
    # Held nodes are open to pods that bear it, and a pod's spec takes more tolerations later.
    rule("", "pods", "patch"),
    rule("", "pods/eviction", "create"),
    rule("", "nodes", "create", "delete"),
    rule("scheduling.k8s.io", "priorityclasses", *_FOLLOW),
    rule("policy", "poddisruptionbudgets", *_FOLLOW),
    rule("topology.volcano.sh", "hypernodes", *_FOLLOW),
    rule("karpenter.sh", "nodeclaims", "create", "delete", "list"),
    rule("autoscaling.x-k8s.io", "provisioningrequests", "create", "delete", "list"),
    rule("", "podtemplates", "create", "delete"),
)

_HEALTH: Final[Rules] = (
    rule(GROUP, "healthpolicies nodehealths", *_FOLLOW),
    rule(GROUP, "nodehealths", "create", "get", "patch"),  # of jobs that fail on a node
    rule(GROUP, "nodehealths/status", "patch"),
    rule("", "nodes", "get", "patch", *_FOLLOW),
    rule("", "nodes/status pods/status", "patch"),
    # A node that is to come back measures its network with others.
    rule(GROUP, "networkchecks", "create", "delete", "get"),
    rule(GROUP, "topologies", "get"),
)

_LOCAL_MODELS: Final = "localmodelcaches localmodelnamespacecaches"
_SERVICES: Final[Rules] = (
    rule("apps", "controllerrevisions", "create", "delete", *_FOLLOW),
    rule(GROUP, "routes", "create", "delete", "patch", *_FOLLOW),
    rule(GROUP, "gangs", "create", "delete", *_FOLLOW),
    rule("", "services", "delete"),
    rule(GROUP, "deviceusages", *_FOLLOW),
    rule(GROUP, "routers modelversions", *_FOLLOW),
    rule("serving.kserve.io", "inferencegraphs llminferenceservices", *_FOLLOW),
    rule("serving.kserve.io", "inferenceservices", "create", "delete", "patch", *_FOLLOW),
    rule("serving.kserve.io", "inferenceservices/status inferencegraphs/status", "patch"),
    rule("serving.kserve.io", "llminferenceservices/status", "patch"),
    rule("leaderworkerset.x-k8s.io", "leaderworkersets", *_FOLLOW),
    # Models come as Datasets.
    rule("data.fluid.io", "datasets", "create", "delete", "patch", *_FOLLOW),
    rule("data.fluid.io", "dataloads", "create", *_FOLLOW),
    rule(GROUP, "datasetcaches", *_FOLLOW),
    rule("serving.kserve.io", "trainedmodels llminferenceserviceconfigs", *_FOLLOW),
    rule("inference.networking.k8s.io", "inferencepools", *_FOLLOW),
    rule("inference.networking.k8s.io", "inferencepools/status", "patch"),
    rule("serving.kserve.io", "trainedmodels/status", "patch"),
    rule("serving.kserve.io", f"{_LOCAL_MODELS} localmodelnodegroups", *_FOLLOW),
    rule("serving.kserve.io", "localmodelcaches/status localmodelnamespacecaches/status", "patch"),
    rule("argoproj.io", "analysistemplates", *_FOLLOW),
    rule("leaderworkerset.x-k8s.io", "leaderworkersets/status", "patch"),
    rule("serving.kserve.io", "servingruntimes clusterservingruntimes", *_FOLLOW),
)

_NOTEBOOKS: Final[Rules] = (
    # Of elastic-jupyter-operator's kinds, and of Kubeflow's Workspaces and Tensorboards.
    rule(GROUP, "environments kernels", "create", "get", "patch", *_FOLLOW),
    rule(GROUP, "kernels/status", "patch"),
    rule("kubeflow.org", "notebooks", "create", "get", "patch", *_FOLLOW),
    rule("kubeflow.org", "notebooks/status", "patch"),
    # Those of jobs that name one.
    rule("tensorboard.kubeflow.org", "tensorboards", "create", "delete", "patch", *_FOLLOW),
    rule("tensorboard.kubeflow.org", "tensorboards/status", "patch"),
    # To tell who installed the kind.
    rule(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "get",
        names="notebooks.kubeflow.org profiles.kubeflow.org tensorboards.tensorboard.kubeflow.org",
    ),
)
MASTER_SECRET: Final = "lockstep-kernels"  # noqa: S105  the name of an object
"""Of it all tokens and keys of notebooks and kernels are made."""

_ENGINES: Final = ("alluxio", "jindo", "juicefs", "thin", "efc", "cache")
_RUNTIMES: Final = " ".join(f"{engine}runtimes" for engine in _ENGINES)
_RUNTIME_STATUSES: Final = " ".join(f"{engine}runtimes/status" for engine in _ENGINES)
_OPERATIONS: Final = "dataloads dataprocesses datamigrates databackups"
_OPERATION_STATUSES: Final = " ".join(f"{one}/status" for one in _OPERATIONS.split())
_DATA: Final[Rules] = (
    rule(GROUP, "datasetcaches", "create", "delete", "patch", *_FOLLOW),
    rule("data.fluid.io", "datasets", "patch", *_FOLLOW),
    rule("data.fluid.io", _OPERATIONS, *_FOLLOW),
    # What a DataProcess runs.
    rule("", "pods", "create"),
    rule("data.fluid.io", _RUNTIMES, *_FOLLOW),
    rule(
        "data.fluid.io",
        f"datasets/status {_OPERATION_STATUSES} {_RUNTIME_STATUSES}",
        "patch",
    ),
    rule("data.fluid.io", "datasets/finalizers", "update"),
    # Their annotations say how much the datasets of each may take on a node.
    rule("", "namespaces", *_FOLLOW),
    # Nodes are labelled with how much of each dataset they have.
    rule("", "nodes", "patch", *_FOLLOW),
    rule("", "persistentvolumes persistentvolumeclaims", "create", "delete", *_FOLLOW),
    rule("", "persistentvolumes/status persistentvolumeclaims/status", "patch"),
    # What the nodes of a dataset show each other; it is never read back.
    rule("", "secrets", "create"),
    rule(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "get",
        names="datasets.data.fluid.io",
    ),
)

_PIPELINES: Final[Rules] = (
    rule(GROUP, "pipelineruns", "create", "delete", "get", "patch", *_FOLLOW),
    rule(GROUP, "pipelineruns/status", "patch"),
    rule(GROUP, "modelversions", "create", "delete", "get", "patch", *_FOLLOW),
    rule(GROUP, "pipelinetriggers datasetcaches", *_FOLLOW),
    rule(GROUP, "pipelinetriggers/status", "patch"),
    # Objects that steps may be, beside jobs, pods and ConfigMaps.
    rule("serving.kserve.io", "inferenceservices", "create", "delete", "get", "patch"),
    rule("data.fluid.io", "dataloads", "create", "delete", "get", "patch"),
    *(
        rule(group, plurals, "create", "delete", "get", "patch", *_FOLLOW)
        for group, plurals in (
            ("kubeflow.org", "mpijobs pytorchjobs tfjobs xgboostjobs"),
            ("trainer.kubeflow.org", "trainjobs"),
            (("batch", "batch.volcano.sh"), "jobs"),
            ("jobset.x-k8s.io", "jobsets"),
            ("sparkoperator.k8s.io", "sparkapplications"),
            ("flink.apache.org", "flinkdeployments"),
            ("ray.io", "rayjobs"),
        )
    ),
    rule("", "configmaps", "delete", "get"),
    # The claims of runs.
    rule("", "persistentvolumeclaims", "create"),
    rule("argoproj.io", "workflows", "create", "delete", "get", "patch", *_FOLLOW),
    rule("argoproj.io", "workflows/status cronworkflows/status", "patch"),
    rule("kubeflow.org", "scheduledworkflows", *_FOLLOW),
    rule("kubeflow.org", "scheduledworkflows/status", "patch"),
    rule("argoproj.io", "cronworkflows workflowtemplates clusterworkflowtemplates", *_FOLLOW),
    rule(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "get",
        names="workflows.argoproj.io",
    ),
)

FOREIGN: Final[Mapping[str, str]] = {
    "batch": "jobs",
    "batch.volcano.sh": "jobs",
    "flow.volcano.sh": "jobflows",
    "jobset.x-k8s.io": "jobsets",
    "kai.alibabacloud.com": "trainingjobs",
    "kubeflow.org": "jaxjobs mpijobs paddlejobs pytorchjobs tfjobs workspaces xgboostjobs",
    "kubeflow.tkestack.io": "jupytergateways jupyterkernels jupyterkernelspecs jupyternotebooks",
    "kueue.x-k8s.io": "clusterqueues cohorts localqueues resourceflavors",
    "scheduling.k8s.io": "podgroups",
    "scheduling.run.ai": "podgroups queues",
    "scheduling.volcano.sh": "podgroups queues",
    "scheduling.x-k8s.io": "podgroups",
    "trainer.kubeflow.org": "trainjobs",
}
"""Kinds of other systems that become ours: plural names by group."""
BUILT_IN: Final = ("batch",)
"""Groups of them that have no definition to ask for."""
LOOKED_UP: Final[Mapping[str, str]] = {
    "flow.volcano.sh": "jobtemplates",
    "kubeflow.org": "workspacekinds",
    "kubeflow.tkestack.io": "jupyterkerneltemplates",
    "trainer.kubeflow.org": "clustertrainingruntimes trainingruntimes",
}
"""Kinds that those name."""
SCALERS: Final[Mapping[str, str]] = {"kai.alibabacloud.com": "scaleins scaleouts"}
"""Kinds that change others."""
_STAY: Final = (
    "flow.volcano.sh",
    "kai.alibabacloud.com",
    "kubeflow.tkestack.io",
    "kueue.x-k8s.io",
    "scheduling.k8s.io",
    "scheduling.run.ai",
    "scheduling.volcano.sh",
    "scheduling.x-k8s.io",
)
"""Groups whose objects do not end by themselves after a time."""


def _foreign() -> Iterator[Json]:
    for group, plurals in FOREIGN.items():
        yield rule(group, plurals, *(() if group in _STAY else ("delete",)), *_FOLLOW)
        yield rule(group, " ".join(f"{plural}/status" for plural in plurals.split()), "patch")
    # An object that is gone from a cache is looked for before what was made of it goes.
    yield rule("kueue.x-k8s.io", "clusterqueues cohorts localqueues", "get")
    yield rule(("scheduling.run.ai", "scheduling.volcano.sh"), "queues", "get")
    yield rule(GROUP, "queues", "get")
    for group, plurals in LOOKED_UP.items():
        yield rule(group, plurals, *_FOLLOW)
    for group, plurals in SCALERS.items():
        yield rule(group, plurals, *_FOLLOW)
        yield rule(group, " ".join(f"{plural}/status" for plural in plurals.split()), "patch")
    names = " ".join(
        f"{plural}.{group}"
        for group, plurals in (*FOREIGN.items(), *SCALERS.items())
        for plural in plurals.split()
        if group not in BUILT_IN
    )
    # To tell who installed a kind.
    yield rule("apiextensions.k8s.io", "customresourcedefinitions", "get", names=names)


PERMISSIONS: Final[Mapping[str, Permissions]] = {
    "scheduler": Permissions(
        cluster=(
            rule("", "pods", "delete", "get", *_FOLLOW),
            rule("", "pods/binding", "create"),
            rule("", "pods/status", "patch"),
            rule("", "nodes", *_FOLLOW),
            rule("resource.k8s.io", "resourceslices deviceclasses", *_FOLLOW),
            rule("resource.k8s.io", "resourceclaims", "get", "patch", *_FOLLOW),
            rule("resource.k8s.io", "resourceclaims/status", "patch"),
            rule("resource.k8s.io", "resourceclaims/binding", "patch", "update"),
            rule(GROUP, "gangs queues topologies nodepolicies", *_FOLLOW),
            rule(GROUP, "gangs/status queues/status", "patch"),
            rule("scheduling.k8s.io", "priorityclasses", *_FOLLOW),
            rule("policy", "poddisruptionbudgets", *_FOLLOW),
            _OWN_KINDS,
            rule("topology.volcano.sh", "hypernodes", *_FOLLOW),
            _RECORD_EVENTS,
        ),
        namespaced=_lead(SCHEDULER_LEASE),
        embedded=_INSTALL,
        serves=True,
    ),
    "controllers": Permissions(
        cluster=(
            rule(GROUP, "trainingjobs", "create", "delete", "get", "patch", *_FOLLOW),
            rule(GROUP, "trainingjobs/status", "patch"),
            rule(GROUP, "trainingjobs/finalizers", "update"),
            rule(GROUP, "gangs", "create", "delete", "get", "patch", *_FOLLOW),
            rule(GROUP, "gangs/status", "patch"),
            rule("", "pods", "create", "delete", "get", *_FOLLOW),
            rule("", "configmaps", "create", "get", "patch", *_FOLLOW),
            rule("", "secrets", "create", "get", "patch"),
            rule("", "services", "create", "get", "patch", *_FOLLOW),
            # Leases and world as a job's launchers use them: a role can only hand on what its
            # maker may do.
            rule("coordination.k8s.io", "leases", "create", "get", "patch", *_FOLLOW),
            rule("rbac.authorization.k8s.io", "roles", "create", "get", "patch", *_FOLLOW),
            rule("rbac.authorization.k8s.io", "rolebindings", "create", "get", *_FOLLOW),
            *_SERVICES,
            *_NOTEBOOKS,
            *_foreign(),
            rule("", "events", "create", "list", "patch"),
            *_TEAMS,
            *_DATA,
            *_HEALTH,
            *_POOLS,
            *_PIPELINES,
            # It bears the last address that gangs were given on each rail.
            rule(GROUP, "topologies", "patch"),
            _OWN_KINDS,
        ),
        namespaced=_lead(CONTROLLERS_LEASE),
        embedded=(*_INSTALL, *_WORKLOADS),
        serves=True,
    ),
    "router": Permissions(
        cluster=(
            rule(GROUP, "routes", *_FOLLOW),
            rule("", "pods", *_FOLLOW),
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
            rule(GROUP, "kernels", "create", "delete", "patch", *_FOLLOW),
            rule(GROUP, "environments", *_FOLLOW),
            # It notes when a page is looked at, and wakes one that sleeps.
            rule("kubeflow.org", "notebooks", "patch", *_FOLLOW),
            rule("", "pods", *_FOLLOW),
            *METRICS,
            _OWN_KINDS,
        ),
        namespaced={SYSTEM_NAMESPACE: (rule("", "secrets", "get", names=MASTER_SECRET),)},
        embedded=_INSTALL,
    ),
    "admission": Permissions(
        cluster=(
            rule("", "nodes", *_FOLLOW),
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
                rule("", "configmaps", *_FOLLOW, names="gpu-sharing"),
                rule("", "secrets", "create"),
                rule("", "secrets", "get", names="lockstep-admission"),
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
            rule("", "nodes", "create", "delete", "get", "patch", *_FOLLOW),
            rule("", "nodes/status pods/status", "patch"),
            rule("", "pods", "delete", "get", "patch", *_FOLLOW),
            rule("", "configmaps secrets services endpoints", "get", *_FOLLOW),
            rule("", "persistentvolumeclaims persistentvolumes serviceaccounts namespaces", "get"),
            rule("", "serviceaccounts/token", "create"),
            rule(GROUP, "datasetcaches", "get", *_FOLLOW),
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
            rule(GROUP, "datasetcaches", *_FOLLOW),
            rule(GROUP, "datasetcaches/status", "patch"),
            rule("", "secrets", "get"),
            _RECORD_EVENTS,
        ),
    ),
    "console": Permissions(
        cluster=(
            rule(GROUP, "trainingjobs gangs queues topologies deviceusages", *_FOLLOW),
            rule(GROUP, "nodehealths nodepools pricelists environments teams", *_FOLLOW),
            rule(GROUP, "pipelineruns modelversions", *_FOLLOW),
            rule("serving.kserve.io", "inferenceservices", *_FOLLOW),
            rule("data.fluid.io", "datasets", *_FOLLOW),
            rule("kubeflow.org", "notebooks", *_FOLLOW),
            rule("", "pods nodes events", *_FOLLOW),
            # What launchers report of their ranks.
            rule("coordination.k8s.io", "leases", *_FOLLOW),
        ),
    ),
    "agent": Permissions(
        cluster=(
            rule("", "nodes", "get", "patch", *_FOLLOW),
            rule("", "nodes/status", "patch"),
            rule("", "pods", "patch", *_FOLLOW),
            rule("resource.k8s.io", "resourceslices", "create", "delete", "patch", *_FOLLOW),
            rule("resource.k8s.io", "deviceclasses", "create"),
            rule("resource.k8s.io", "resourceclaims", "get"),
            rule(GROUP, "deviceusages", "create", "patch"),
            rule(GROUP, "nodehealths", "create", "get", "patch", *_FOLLOW),
            rule(GROUP, "networkchecks", *_FOLLOW),
            rule(GROUP, "networkchecks/status", "patch"),
            _RECORD_EVENTS,
        ),
        namespaced={
            SYSTEM_NAMESPACE: (rule("", "configmaps", *_FOLLOW, names="lockstep-device-files"),),
            # What the SR-IOV and the shared RDMA device plugins are told.
            "kube-system": (rule("", "configmaps", *_FOLLOW, names="sriovdp-config rdma-devices"),),
        },
        serves=True,
    ),
}
"""By the name of the command that starts the part."""

_CHANGE: Final = ("create", "delete", "deletecollection", "patch", "update")
_READ: Final = ("get", "list", "watch")

_JUPYTER: Final = f"{FOREIGN['kubeflow.tkestack.io']} jupyterkerneltemplates"

PEOPLE: Final[Mapping[str, Rules]] = {
    "view": (
        rule(GROUP, "trainingjobs trainingjobs/status gangs gangs/status", *_READ),
        # Launchers report in them how each rank steps.
        rule("coordination.k8s.io", "leases", *_READ),
        rule(GROUP, "queues queues/status topologies nodepolicies", *_READ),
        rule(GROUP, "deviceusages nodehealths datasetcaches nodepools pricelists", *_READ),
        rule("data.fluid.io", f"datasets {_OPERATIONS} {_RUNTIMES}", *_READ),
        rule(GROUP, "pipelineruns pipelineruns/status pipelinetriggers modelversions", *_READ),
        rule("argoproj.io", "workflows workflowtemplates cronworkflows", *_READ),
        rule(GROUP, "routes environments kernels", *_READ),
        rule("kubeflow.org", "notebooks workspaces workspacekinds", *_READ),
        rule("kubeflow.tkestack.io", _JUPYTER, *_READ),
        rule("serving.kserve.io", "inferenceservices", *_READ),
        # What launchers report of their ranks.
        rule("coordination.k8s.io", "leases", *_READ),
        rule("tensorboard.kubeflow.org", "tensorboards", *_READ),
    ),
    "edit": (
        rule(GROUP, "pipelineruns pipelinetriggers modelversions", *_CHANGE),
        rule("argoproj.io", "workflows workflowtemplates cronworkflows", *_CHANGE),
        rule(GROUP, "trainingjobs gangs environments kernels", *_CHANGE),
        rule("kubeflow.org", "notebooks workspaces", *_CHANGE),
        rule("kubeflow.tkestack.io", _JUPYTER, *_CHANGE),
        rule("serving.kserve.io", "inferenceservices", *_CHANGE),
        rule("tensorboard.kubeflow.org", "tensorboards", *_CHANGE),
        rule("data.fluid.io", f"datasets {_OPERATIONS} {_RUNTIMES}", *_CHANGE),
    ),
}
"""What the roles that every cluster has for people gain; ``admin`` has what ``edit`` has."""
