"""Which of KServe's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind

GROUP: Final = "serving.kserve.io"

_LOCAL_COLUMNS: Final = (
    ("Model", "string", ".spec.sourceModelUri"),
    ("Nodes", "integer", ".status.copies.total"),
    ("Available", "integer", ".status.copies.available"),
)

KINDS: Final[tuple[ForeignKind, ...]] = (
    ForeignKind(
        GROUP,
        "v1beta1",
        "InferenceService",
        "inferenceservices",
        short_names=("isvc",),
        columns=(
            ("URL", "string", ".status.url"),
            ("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),
            ("Revision", "string", ".status.components.predictor.latestReadyRevision"),
        ),
    ),
    ForeignKind("argoproj.io", "v1alpha1", "AnalysisTemplate", "analysistemplates"),
    ForeignKind(
        GROUP,
        "v1alpha1",
        "InferenceGraph",
        "inferencegraphs",
        short_names=("ig",),
        columns=(
            ("URL", "string", ".status.url"),
            ("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),
        ),
    ),
    ForeignKind(
        GROUP,
        "v1alpha1",
        "LLMInferenceService",
        "llminferenceservices",
        short_names=("llmisvc",),
        columns=(
            ("URL", "string", ".status.url"),
            ("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),
        ),
        more_versions=("v1alpha2",),
    ),
    ForeignKind(
        GROUP,
        "v1alpha1",
        "ServingRuntime",
        "servingruntimes",
        columns=(("Disabled", "boolean", ".spec.disabled"),),
    ),
    ForeignKind(
        GROUP,
        "v1alpha1",
        "ClusterServingRuntime",
        "clusterservingruntimes",
        namespaced=False,
        columns=(("Disabled", "boolean", ".spec.disabled"),),
    ),
    ForeignKind(
        GROUP,
        "v1alpha1",
        "TrainedModel",
        "trainedmodels",
        short_names=("tm",),
        columns=(
            ("URL", "string", ".status.url"),
            ("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),
        ),
    ),
    ForeignKind(
        GROUP,
        "v1alpha1",
        "LocalModelCache",
        "localmodelcaches",
        namespaced=False,
        short_names=("lmc",),
        columns=_LOCAL_COLUMNS,
    ),
    ForeignKind(
        GROUP,
        "v1alpha1",
        "LocalModelNamespaceCache",
        "localmodelnamespacecaches",
        short_names=("lmnc",),
        columns=_LOCAL_COLUMNS,
    ),
    ForeignKind(GROUP, "v1alpha1", "LocalModelNodeGroup", "localmodelnodegroups", namespaced=False),
    ForeignKind(
        GROUP,
        "v1alpha1",
        "LLMInferenceServiceConfig",
        "llminferenceserviceconfigs",
        more_versions=("v1alpha2",),
    ),
    ForeignKind("inference.networking.k8s.io", "v1", "InferencePool", "inferencepools"),
)
