"""Which of KServe's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind, family

GROUP: Final = "serving.kserve.io"
_kind, _beta = family(GROUP, "v1alpha1"), family(GROUP, "v1beta1")

_ADDRESS_COLUMNS: Final = (
    ("URL", "string", ".status.url"),
    ("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),
)
_LOCAL_COLUMNS: Final = (
    ("Model", "string", ".spec.sourceModelUri"),
    ("Nodes", "integer", ".status.copies.total"),
    ("Available", "integer", ".status.copies.available"),
)

KINDS: Final[tuple[ForeignKind, ...]] = (
    _beta(
        "InferenceService",
        "inferenceservices",
        short_names=("isvc",),
        columns=(
            *_ADDRESS_COLUMNS,
            ("Revision", "string", ".status.components.predictor.latestReadyRevision"),
        ),
    ),
    ForeignKind("argoproj.io", "v1alpha1", "AnalysisTemplate", "analysistemplates"),
    _kind("InferenceGraph", "inferencegraphs", short_names=("ig",), columns=_ADDRESS_COLUMNS),
    _kind(
        "LLMInferenceService",
        "llminferenceservices",
        short_names=("llmisvc",),
        columns=_ADDRESS_COLUMNS,
        more_versions=("v1alpha2",),
    ),
    _kind(
        "ServingRuntime", "servingruntimes", columns=(("Disabled", "boolean", ".spec.disabled"),)
    ),
    _kind(
        "ClusterServingRuntime",
        "clusterservingruntimes",
        namespaced=False,
        columns=(("Disabled", "boolean", ".spec.disabled"),),
    ),
    _kind("TrainedModel", "trainedmodels", short_names=("tm",), columns=_ADDRESS_COLUMNS),
    _kind(
        "LocalModelCache",
        "localmodelcaches",
        namespaced=False,
        short_names=("lmc",),
        columns=_LOCAL_COLUMNS,
    ),
    _kind(
        "LocalModelNamespaceCache",
        "localmodelnamespacecaches",
        short_names=("lmnc",),
        columns=_LOCAL_COLUMNS,
    ),
    _kind("LocalModelNodeGroup", "localmodelnodegroups", namespaced=False),
    _kind("LLMInferenceServiceConfig", "llminferenceserviceconfigs", more_versions=("v1alpha2",)),
    ForeignKind("inference.networking.k8s.io", "v1", "InferencePool", "inferencepools"),
)
