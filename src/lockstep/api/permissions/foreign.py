"""What the controllers may do with kinds of other systems that become ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from lockstep.api.names import GROUP
from lockstep.api.permissions.rules import FOLLOW, rule
from lockstep.api.wire import Json

FOREIGN: Final[Mapping[str, str]] = {
    "batch": "jobs",
    "batch.volcano.sh": "jobs",
    "flow.volcano.sh": "jobflows",
    "jobset.x-k8s.io": "jobsets",
    "kai.alibabacloud.com": "trainingjobs",
    "kubeflow.org": "jaxjobs mpijobs paddlejobs pytorchjobs tfjobs workspaces xgboostjobs",
    "kubeflow.tkestack.io": "jupytergateways jupyterkernels jupyterkernelspecs jupyternotebooks",
    "kueue.x-k8s.io": "clusterqueues cohorts localqueues resourceflavors topologies "
    "workloadpriorityclasses",
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
    "kueue.x-k8s.io": "admissionchecks",
    GROUP: "topologies",
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


_SUSPENDED: Final = ("batch", "jobset.x-k8s.io", "kubeflow.org", "trainer.kubeflow.org")
"""Groups of jobs that are let go and suspended again under Kueue's contract."""


def foreign() -> Iterator[Json]:
    """Yield the rules for these kinds."""
    for group, plurals in FOREIGN.items():
        yield rule(group, plurals, *(() if group in _STAY else ("delete",)), *FOLLOW)
        yield rule(group, " ".join(f"{plural}/status" for plural in plurals.split()), "patch")
    yield rule("kueue.x-k8s.io", "workloads", "create", *FOLLOW)
    yield rule("kueue.x-k8s.io", "workloads/status", "patch")
    for group in _SUSPENDED:
        yield rule(group, FOREIGN[group], "patch")
    # An object that is gone from a cache is looked for before what was made of it goes.
    yield rule("kueue.x-k8s.io", "clusterqueues cohorts localqueues workloadpriorityclasses", "get")
    yield rule("scheduling.k8s.io", "priorityclasses", "create", "delete", "get", "patch", *FOLLOW)
    yield rule("", "persistentvolumeclaims", "create", "get", *FOLLOW)
    yield rule(("scheduling.run.ai", "scheduling.volcano.sh"), "queues", "get")
    yield rule(GROUP, "queues", "get")
    for group, plurals in LOOKED_UP.items():
        yield rule(group, plurals, *FOLLOW)
    for group, plurals in SCALERS.items():
        yield rule(group, plurals, *FOLLOW)
        yield rule(group, " ".join(f"{plural}/status" for plural in plurals.split()), "patch")
    names = " ".join(
        f"{plural}.{group}"
        for group, plurals in (*FOREIGN.items(), *SCALERS.items())
        for plural in plurals.split()
        if group not in BUILT_IN
    )
    # To tell who installed a kind.
    yield rule("apiextensions.k8s.io", "customresourcedefinitions", "get", names=names)
