"""What the controllers of each capability may do."""

from __future__ import annotations

from typing import Final

from lockstep.api.names import GROUP
from lockstep.api.permissions.rules import FOLLOW, Rules, rule

TEAMS: Final[Rules] = (
    rule(GROUP, "teams", "create", "patch", *FOLLOW),  # of Kubeflow's profiles
    rule(GROUP, "teams/status", "patch"),
    rule("kubeflow.org", "profiles", *FOLLOW),
    rule("kubeflow.org", "profiles/status", "patch"),
    rule(GROUP, "queues", "create", "delete", "patch", *FOLLOW),
    rule("", "namespaces", "create", "patch", *FOLLOW),
    rule("", "resourcequotas limitranges", "create", "delete", "patch", *FOLLOW),
    rule("networking.k8s.io", "networkpolicies", "create", "delete", "patch", *FOLLOW),
    rule("rbac.authorization.k8s.io", "rolebindings", "create", "delete", "patch", *FOLLOW),
    # It gives members these roles without having their rights itself, and gives no others.
    rule("rbac.authorization.k8s.io", "clusterroles", "bind", names="admin edit view"),
    # Members read their team, its queue and those above by their names; a role can only hand on
    # what its maker may do.
    rule(
        "rbac.authorization.k8s.io",
        "clusterroles clusterrolebindings",
        "create",
        "delete",
        "patch",
        *FOLLOW,
    ),
    rule(GROUP, "teams queues", "get"),
    # An owner that blocks nothing still takes the right to say so on some servers.
    rule(GROUP, "teams/finalizers", "update"),
)

POOLS: Final[Rules] = (
    rule(GROUP, "nodepools pricelists nodepolicies topologies", *FOLLOW),
    rule(GROUP, "nodepools/status", "patch"),
    # Held nodes are open to pods that bear it, and a pod's spec takes more tolerations later.
    rule("", "pods", "patch"),
    rule("", "pods/eviction", "create"),
    rule("", "nodes", "create", "delete"),
    rule("scheduling.k8s.io", "priorityclasses", *FOLLOW),
    rule("policy", "poddisruptionbudgets", *FOLLOW),
    rule("topology.volcano.sh", "hypernodes", *FOLLOW),
    rule("karpenter.sh", "nodeclaims", "create", "delete", "list"),
    rule("autoscaling.x-k8s.io", "provisioningrequests", "create", "delete", "list"),
    rule("", "podtemplates", "create", "delete"),
)

HEALTH: Final[Rules] = (
    rule(GROUP, "healthpolicies nodehealths", *FOLLOW),
    rule(GROUP, "nodehealths", "create", "get", "patch"),  # of jobs that fail on a node
    rule(GROUP, "nodehealths/status", "patch"),
    rule("", "nodes", "get", "patch", *FOLLOW),
    rule("", "nodes/status pods/status", "patch"),
    # A node that is to come back measures its network with others.
    rule(GROUP, "networkchecks", "create", "delete", "get"),
    rule(GROUP, "topologies", "get"),
)

_LOCAL_MODELS: Final = "localmodelcaches localmodelnamespacecaches"
SERVICES: Final[Rules] = (
    rule("apps", "controllerrevisions", "create", "delete", *FOLLOW),
    rule(GROUP, "routes", "create", "delete", "patch", *FOLLOW),
    rule(GROUP, "gangs", "create", "delete", *FOLLOW),
    rule("", "services", "delete"),
    rule(GROUP, "deviceusages", *FOLLOW),
    rule(GROUP, "routers modelversions", *FOLLOW),
    rule("serving.kserve.io", "inferencegraphs llminferenceservices", *FOLLOW),
    rule("serving.kserve.io", "inferenceservices", "create", "delete", "patch", *FOLLOW),
    rule("serving.kserve.io", "inferenceservices/status inferencegraphs/status", "patch"),
    rule("serving.kserve.io", "llminferenceservices/status", "patch"),
    rule("leaderworkerset.x-k8s.io", "leaderworkersets", *FOLLOW),
    # Models come as Datasets.
    rule("data.fluid.io", "datasets", "create", "delete", "patch", *FOLLOW),
    rule("data.fluid.io", "dataloads", "create", *FOLLOW),
    rule(GROUP, "datasetcaches", *FOLLOW),
    rule("serving.kserve.io", "trainedmodels llminferenceserviceconfigs", *FOLLOW),
    rule("inference.networking.k8s.io", "inferencepools", *FOLLOW),
    rule("inference.networking.k8s.io", "inferencepools/status", "patch"),
    rule("serving.kserve.io", "trainedmodels/status", "patch"),
    rule("serving.kserve.io", f"{_LOCAL_MODELS} localmodelnodegroups", *FOLLOW),
    rule("serving.kserve.io", "localmodelcaches/status localmodelnamespacecaches/status", "patch"),
    rule("argoproj.io", "analysistemplates", *FOLLOW),
    rule("leaderworkerset.x-k8s.io", "leaderworkersets/status", "patch"),
    rule("serving.kserve.io", "servingruntimes clusterservingruntimes", *FOLLOW),
)

NOTEBOOKS: Final[Rules] = (
    # Of elastic-jupyter-operator's kinds, and of Kubeflow's Workspaces and Tensorboards.
    rule(GROUP, "environments kernels", "create", "get", "patch", *FOLLOW),
    rule(GROUP, "kernels/status", "patch"),
    rule("kubeflow.org", "notebooks", "create", "get", "patch", *FOLLOW),
    rule("kubeflow.org", "notebooks/status", "patch"),
    # Those of jobs that name one.
    rule("tensorboard.kubeflow.org", "tensorboards", "create", "delete", "patch", *FOLLOW),
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
RUNTIMES: Final = " ".join(f"{engine}runtimes" for engine in _ENGINES)
_RUNTIME_STATUSES: Final = " ".join(f"{engine}runtimes/status" for engine in _ENGINES)
OPERATIONS: Final = "dataloads dataprocesses datamigrates databackups"
_OPERATION_STATUSES: Final = " ".join(f"{one}/status" for one in OPERATIONS.split())
DATA: Final[Rules] = (
    rule(GROUP, "datasetcaches", "create", "delete", "patch", *FOLLOW),
    rule("data.fluid.io", "datasets", "patch", *FOLLOW),
    rule("data.fluid.io", OPERATIONS, *FOLLOW),
    # What a DataProcess runs.
    rule("", "pods", "create"),
    rule("data.fluid.io", RUNTIMES, *FOLLOW),
    rule(
        "data.fluid.io",
        f"datasets/status {_OPERATION_STATUSES} {_RUNTIME_STATUSES}",
        "patch",
    ),
    rule("data.fluid.io", "datasets/finalizers", "update"),
    # Their annotations say how much the datasets of each may take on a node.
    rule("", "namespaces", *FOLLOW),
    # Nodes are labelled with how much of each dataset they have.
    rule("", "nodes", "patch", *FOLLOW),
    rule("", "persistentvolumes persistentvolumeclaims", "create", "delete", *FOLLOW),
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

PIPELINES: Final[Rules] = (
    rule(GROUP, "pipelineruns", "create", "delete", "get", "patch", *FOLLOW),
    rule(GROUP, "pipelineruns/status", "patch"),
    rule(GROUP, "modelversions", "create", "delete", "get", "patch", *FOLLOW),
    rule(GROUP, "pipelinetriggers datasetcaches", *FOLLOW),
    rule(GROUP, "pipelinetriggers/status", "patch"),
    # Objects that steps may be, beside jobs, pods and ConfigMaps.
    rule("serving.kserve.io", "inferenceservices", "create", "delete", "get", "patch"),
    rule("data.fluid.io", "dataloads", "create", "delete", "get", "patch"),
    *(
        rule(group, plurals, "create", "delete", "get", "patch", *FOLLOW)
        for group, plurals in (
            ("kubeflow.org", "mpijobs pytorchjobs tfjobs xgboostjobs"),
            ("trainer.kubeflow.org", "trainjobs"),
            (("batch", "batch.volcano.sh"), "jobs"),
            ("jobset.x-k8s.io", "jobsets"),
            ("sparkoperator.k8s.io", "scheduledsparkapplications sparkapplications"),
            ("flink.apache.org", "flinkdeployments"),
            ("ray.io", "rayjobs"),
        )
    ),
    rule("", "configmaps", "delete", "get"),
    # The claims of runs.
    rule("", "persistentvolumeclaims", "create"),
    rule("argoproj.io", "workflows", "create", "delete", "get", "patch", *FOLLOW),
    rule("argoproj.io", "workflows/status cronworkflows/status", "patch"),
    rule("kubeflow.org", "scheduledworkflows", *FOLLOW),
    rule("kubeflow.org", "scheduledworkflows/status", "patch"),
    rule("argoproj.io", "cronworkflows workflowtemplates clusterworkflowtemplates", *FOLLOW),
    rule(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "get",
        names="workflows.argoproj.io",
    ),
)
