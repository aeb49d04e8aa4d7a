"""Views of the Kubernetes kinds that Lockstep reads: only the fields it needs."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from lockstep.api.containers import Container, ContainerStatus, Quantity
from lockstep.api.meta import Condition, LabelSelector, ObjectMeta
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire


class NodeSelectorRequirement(Wire, frozen=True):
    """One requirement on a node's labels (or fields)."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str] = []


class NodeSelectorTerm(Wire, frozen=True):
    """Requirements that must all hold."""

    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(Wire, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredNodeTerm(Wire, frozen=True):
    """A term that would be nice to have, with its weight 1..100."""

    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(Wire, frozen=True):
    """Which nodes a pod must or would rather run on."""

    required: NodeSelector | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[PreferredNodeTerm] = field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire, frozen=True):
    """A pod's affinities; only those to nodes are read."""

    node_affinity: NodeAffinity | None = None


class Toleration(Wire, frozen=True):
    """Which taints a pod bears."""

    key: str = ""
    operator: Literal["Exists", "Equal", "Lt", "Gt"] = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class Taint(Wire, frozen=True):
    """Why pods should stay away from a node."""

    key: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: str = ""
    time_added: str | None = None


class SchedulingGate(Wire, frozen=True):
    """A pod is not scheduled while it has one of these."""

    name: str


class ClaimSource(Wire, frozen=True):
    """The claim that a volume stands for."""

    claim_name: str = ""


class PodVolume(Wire, frozen=True):
    """A volume of a pod, as far as where its data lies goes."""

    persistent_volume_claim: ClaimSource | None = None

    @property
    def claim(self) -> str:
        """Return the name of the claim that it stands for; empty for other volumes."""
        return self.persistent_volume_claim.claim_name if self.persistent_volume_claim else ""


class PodClaim(Wire, frozen=True):
    """A claim for devices of a pod: one by name, or one made from a template for it alone."""

    name: str
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodClaimStatus(Wire, frozen=True):
    """Which claim was made for a pod's ``name``; none where it needs none."""

    name: str
    resource_claim_name: str = ""


class SchedulingGroup(Wire, frozen=True):
    """The PodGroup of Kubernetes that a pod belongs to."""

    pod_group_name: str = ""


class PodSpec(Wire, frozen=True):
    """The scheduling view of a pod's spec."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    priority_class_name: str = ""
    preemption_policy: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: dict[str, Quantity] = {}
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    scheduling_gates: list[SchedulingGate] = []
    volumes: list[PodVolume] = []
    resource_claims: list[PodClaim] = []
    scheduling_group: SchedulingGroup | None = None
    restart_policy: str = "Always"
    hostname: str = ""
    subdomain: str = ""


class PodStatus(Wire, frozen=True):
    """What a pod is doing."""

    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    conditions: list[Condition] = []
    pod_ip: str = field(default="", name="podIP")
    host_ip: str = field(default="", name="hostIP")
    nominated_node_name: str = ""
    start_time: str | None = None
    init_container_statuses: list[ContainerStatus] = []
    container_statuses: list[ContainerStatus] = []
    resource_claim_statuses: list[PodClaimStatus] = []


SET_UP = "PodReadyToStartContainers"
"""The kubelet's condition of pods whose volumes and network are there: images come next."""


class Pod(Wire, frozen=True):
    """The scheduling view of a pod."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
    api_version: str = ""
    kind: str = ""


class NodeSpec(Wire, frozen=True):
    """The scheduling view of a node's spec."""

    unschedulable: bool = False
    taints: list[Taint] = []
    provider_id: str = field(default="", name="providerID")


class NodeStatus(Wire, frozen=True):
    """A node's capacity and conditions."""

    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    conditions: list[Condition] = []


class Node(Wire, frozen=True):
    """The scheduling view of a node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
    api_version: str = ""
    kind: str = ""


class PriorityClass(Wire, frozen=True):
    """A named priority."""

    metadata: ObjectMeta
    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"


class ServicePort(Wire, frozen=True):
    """A port of a service."""

    port: int
    name: str = ""
    protocol: str = "TCP"


class ServiceSpec(Wire, frozen=True):
    """The fields of a service that name resolution needs."""

    selector: dict[str, str] = {}
    cluster_ip: str = field(default="", name="clusterIP")
    ports: list[ServicePort] = []
    publish_not_ready_addresses: bool = False
    type: str = "ClusterIP"
    external_name: str = ""


class Service(Wire, frozen=True):
    """A service."""

    metadata: ObjectMeta
    spec: ServiceSpec = ServiceSpec()


class ControllerRevision(Wire, frozen=True):
    """What a controller was told to run at some time, kept so that it can go back."""

    metadata: ObjectMeta
    revision: int = 0
    data: dict[str, Any] = {}


class ConfigMap(Wire, frozen=True):
    """Configuration data; ``binary_data`` is base64."""

    metadata: ObjectMeta
    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}


class Secret(Wire, frozen=True):
    """Secret data, base64."""

    metadata: ObjectMeta
    data: dict[str, str] = {}
    type: str = "Opaque"


class ObjectReference(Wire, frozen=True):
    """A pointer to any object."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Event(Wire, frozen=True):
    """Something that happened to an object (core/v1)."""

    metadata: ObjectMeta
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    type: str = "Normal"
    count: int = 0
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None


class LeaseSpec(Wire, frozen=True):
    """Who holds a lease and until when."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int = 0


class Lease(Wire, frozen=True):
    """A lease (coordination.k8s.io)."""

    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()


class Role(Wire, frozen=True):
    """What its bearers may do in its namespace (rbac.authorization.k8s.io)."""

    metadata: ObjectMeta
    rules: list[dict[str, Any]] = []


class AnyObject(Wire, frozen=True):
    """Any object, as far as all of them are alike."""

    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class Review(Wire, frozen=True):
    """What the server answers to a question that it does not keep."""

    status: dict[str, Any] = {}


class PodDisruptionBudgetStatus(Wire, frozen=True):
    """How many disruptions a budget allows now."""

    disruptions_allowed: int = 0


class PodDisruptionBudgetSpec(Wire, frozen=True):
    """Whom a budget protects, and how many of them are to be there: a number or a percentage."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class PodDisruptionBudget(Wire, frozen=True):
    """A pod disruption budget."""

    metadata: ObjectMeta
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


PODS = Resource("", "v1", "pods", "Pod", True, Pod)
NODES = Resource("", "v1", "nodes", "Node", False, Node)
BUDGETS = Resource(
    "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, PodDisruptionBudget
)
SERVICES = Resource("", "v1", "services", "Service", True, Service)
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, AnyObject)
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", False, AnyObject)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", True, ConfigMap)
CONTROLLER_REVISIONS = Resource(
    "apps", "v1", "controllerrevisions", "ControllerRevision", True, ControllerRevision
)
SECRETS = Resource("", "v1", "secrets", "Secret", True, Secret)
EVENTS = Resource("", "v1", "events", "Event", True, Event)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False, AnyObject)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", True, Lease)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", True, Role)
ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True, AnyObject
)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, PriorityClass
)
TOKEN_REVIEWS = Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False, Review
)
SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False, Review
)
CRDS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    False,
    AnyObject,
)
