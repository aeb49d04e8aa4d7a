"""What people gain by the roles that every cluster has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lockstep.api.names import CONTROLLERS_LEASE, GROUP, SCHEDULER_LEASE
from lockstep.api.permissions.capabilities import OPERATIONS, RUNTIMES
from lockstep.api.permissions.foreign import FOREIGN
from lockstep.api.permissions.rules import Rules, rule

_CHANGE: Final = ("create", "delete", "deletecollection", "patch", "update")
_READ: Final = ("get", "list", "watch")

_JUPYTER: Final = f"{FOREIGN['kubeflow.tkestack.io']} jupyterkerneltemplates"

STANDING: Final[Rules] = (
    rule("apps", "deployments daemonsets", "get", "list"),
    rule("coordination.k8s.io", "leases", "get", names=f"{SCHEDULER_LEASE} {CONTROLLERS_LEASE}"),
    rule(GROUP, "routers", "get", "list"),
)
"""What every user may see of the parts, in the namespaces where they run: whether they do."""

PEOPLE: Final[Mapping[str, Rules]] = {
    "view": (
        rule(GROUP, "trainingjobs trainingjobs/status gangs gangs/status", *_READ),
        # Launchers report in them how each rank steps.
        rule("coordination.k8s.io", "leases", *_READ),
        rule(GROUP, "queues queues/status topologies nodepolicies", *_READ),
        rule(GROUP, "deviceusages nodehealths datasetcaches nodepools pricelists", *_READ),
        rule("data.fluid.io", f"datasets {OPERATIONS} {RUNTIMES}", *_READ),
        rule(GROUP, "pipelineruns pipelineruns/status pipelinetriggers modelversions", *_READ),
        rule("argoproj.io", "workflows workflowtemplates cronworkflows", *_READ),
        rule(GROUP, "routes environments kernels", *_READ),
        rule("kubeflow.org", "notebooks workspaces workspacekinds", *_READ),
        rule("kubeflow.tkestack.io", _JUPYTER, *_READ),
        rule("serving.kserve.io", "inferenceservices", *_READ),
        # What launchers report of their ranks.
        rule("coordination.k8s.io", "leases", *_READ),
        rule("tensorboard.kubeflow.org", "tensorboards", *_READ),
        # A question about what the namespace used, which the recorder answers.
        rule(GROUP, "usagequeries", "create", "delete", "get", "list", "watch"),
    ),
    "edit": (
        rule(GROUP, "pipelineruns pipelinetriggers modelversions", *_CHANGE),
        rule("argoproj.io", "workflows workflowtemplates cronworkflows", *_CHANGE),
        rule(GROUP, "trainingjobs gangs environments kernels", *_CHANGE),
        rule("kubeflow.org", "notebooks workspaces", *_CHANGE),
        rule("kubeflow.tkestack.io", _JUPYTER, *_CHANGE),
        rule("serving.kserve.io", "inferenceservices", *_CHANGE),
        rule("tensorboard.kubeflow.org", "tensorboards", *_CHANGE),
        rule("data.fluid.io", f"datasets {OPERATIONS} {RUNTIMES}", *_CHANGE),
    ),
}
"""What the roles that every cluster has for people gain; ``admin`` has what ``edit`` has."""
