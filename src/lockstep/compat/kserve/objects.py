"""The fields of KServe's kinds that are read; pod specs stay plain trees."""

from __future__ import annotations

from msgspec import field

from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.wire import Json, Wire
from lockstep.compat.kserve.kinds import GROUP, KINDS


class Spec(Wire, frozen=True):
    """What is to be served; components are plain trees, for a pod spec lies open in them."""

    predictor: Json = {}
    transformer: Json | None = None
    explainer: Json | None = None
    canary: list[Json] = []


class ComponentStatus(Wire, frozen=True):
    """How one component is."""

    latest_created_revision: str = ""
    latest_ready_revision: str = ""
    latest_rolledout_revision: str = ""
    previous_rolledout_revision: str = ""
    """The revision that was rolled out before that one; a lower canary share goes back to it."""
    traffic: list[Json] = []
    release: Json = {}
    """How far a release in steps is."""
    rollout: Json = {}
    """How far replicas are replaced one at a time, where there is no room for more."""
    url: str = ""
    rest_url: str = ""
    grpc_url: str = ""


class Status(Wire, frozen=True):
    """How a service is."""

    conditions: list[Condition] = []
    components: dict[str, ComponentStatus] = {}
    model_status: Json = {}
    url: str = ""
    address: Json = {}
    observed_generation: int = 0
    deployment_mode: str = ""
    serving_runtime_name: str = ""
    cluster_serving_runtime_name: str = ""
    canary_statuses: list[Json] = []


class InferenceService(Wire, frozen=True):
    """A model to be served."""

    metadata: ObjectMeta
    spec: Spec = Spec()
    status: Status = Status()
    api_version: str = f"{GROUP}/v1beta1"
    kind: str = "InferenceService"


class GraphSpec(Wire, frozen=True):
    """What a graph does with a request."""

    nodes: dict[str, Json] = {}
    timeout: int | None = None


class GraphStatus(Wire, frozen=True):
    """How a graph is."""

    conditions: list[Condition] = []
    url: str = ""
    observed_generation: int = 0
    deployment_mode: str = ""


class InferenceGraph(Wire, frozen=True):
    """Services that answer a request together."""

    metadata: ObjectMeta
    spec: GraphSpec = GraphSpec()
    status: GraphStatus = GraphStatus()
    api_version: str = f"{GROUP}/v1alpha1"
    kind: str = "InferenceGraph"


class SupportedFormat(Wire, frozen=True):
    """A format that a runtime serves."""

    name: str
    version: str | None = None
    auto_select: bool | None = None
    priority: int = 0


class RuntimeSpec(Wire, frozen=True):
    """How models of some formats are served."""

    supported_model_formats: list[SupportedFormat] = []
    protocol_versions: list[str] = []
    disabled: bool = False
    multi_model: bool = False
    containers: list[Json] = []
    volumes: list[Json] = []
    node_selector: dict[str, str] = {}
    affinity: Json | None = None
    tolerations: list[Json] = []
    image_pull_secrets: list[Json] = []
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    worker_spec: Json | None = field(default=None, name="workerSpec")


class ServingRuntime(Wire, frozen=True):
    """A runtime of a namespace, or of the whole cluster."""

    metadata: ObjectMeta
    spec: RuntimeSpec = RuntimeSpec()
    api_version: str = f"{GROUP}/v1alpha1"
    kind: str = "ServingRuntime"


_KINDS = {kind.kind: kind for kind in KINDS}

INFERENCE_SERVICES = _KINDS["InferenceService"].read_as(InferenceService)
ANALYSIS_TEMPLATES = _KINDS["AnalysisTemplate"].resource
LLM_SERVICES = _KINDS["LLMInferenceService"].resource
INFERENCE_GRAPHS = _KINDS["InferenceGraph"].read_as(InferenceGraph)
SERVING_RUNTIMES = _KINDS["ServingRuntime"].read_as(ServingRuntime)
CLUSTER_SERVING_RUNTIMES = _KINDS["ClusterServingRuntime"].read_as(ServingRuntime)
TRAINED_MODELS = _KINDS["TrainedModel"].resource
LOCAL_MODEL_CACHES = _KINDS["LocalModelCache"].resource
LOCAL_MODEL_NAMESPACE_CACHES = _KINDS["LocalModelNamespaceCache"].resource
LOCAL_MODEL_NODE_GROUPS = _KINDS["LocalModelNodeGroup"].resource
LLM_CONFIGS = _KINDS["LLMInferenceServiceConfig"].resource
INFERENCE_POOLS = _KINDS["InferencePool"].resource
