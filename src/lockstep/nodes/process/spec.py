"""The view of a pod that a node needs to run it."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from lockstep.api.containers import ContainerPort, ContainerStatus, Quantity, ResourceRequirements
from lockstep.api.core import Affinity
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire


class KeyRef(Wire, frozen=True):
    """One key of a ConfigMap or Secret."""

    key: str
    name: str = ""
    optional: bool = False


class FieldRef(Wire, frozen=True):
    """A field of the pod itself."""

    field_path: str
    api_version: str = "v1"


class ResourceFieldRef(Wire, frozen=True):
    """A request or a limit of a container of the pod."""

    resource: str
    container_name: str = ""
    divisor: Quantity = "0"


class EnvSource(Wire, frozen=True):
    """Where a variable's value comes from; one of four is set."""

    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None


class EnvVar(Wire, frozen=True):
    """A variable of a container's environment."""

    name: str
    value: str = ""
    value_from: EnvSource | None = None


class NameRef(Wire, frozen=True):
    """A ConfigMap or Secret by name."""

    name: str = ""
    optional: bool = False


class EnvFrom(Wire, frozen=True):
    """All keys of a ConfigMap or Secret as variables."""

    prefix: str = ""
    config_map_ref: NameRef | None = None
    secret_ref: NameRef | None = None


class ExecAction(Wire, frozen=True):
    """A command run beside the container."""

    command: list[str] = []


class HttpHeader(Wire, frozen=True):
    """A header of an HTTP probe."""

    name: str
    value: str = ""


class HttpAction(Wire, frozen=True):
    """A GET to the container."""

    port: int | str
    path: str = "/"
    host: str = ""
    scheme: str = "HTTP"
    http_headers: list[HttpHeader] = []


class TcpAction(Wire, frozen=True):
    """A connection to the container."""

    port: int | str
    host: str = ""


class SleepAction(Wire, frozen=True):
    """A pause before the container is stopped."""

    seconds: int = 0


class Handler(Wire, frozen=True):
    """What a lifecycle hook does."""

    exec_: ExecAction | None = field(default=None, name="exec")
    http_get: HttpAction | None = None
    tcp_socket: TcpAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Wire, frozen=True):
    """Hooks after the start and before the stop of a container."""

    post_start: Handler | None = None
    pre_stop: Handler | None = None


class Probe(Wire, frozen=True):
    """How and how often to ask a container how it is."""

    exec_: ExecAction | None = field(default=None, name="exec")
    http_get: HttpAction | None = None
    tcp_socket: TcpAction | None = None
    grpc: dict[str, Any] | None = None
    initial_delay_seconds: int = 0
    period_seconds: int = 10
    timeout_seconds: int = 1
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None


class VolumeMount(Wire, frozen=True):
    """Where a container wants a volume."""

    name: str
    mount_path: str
    read_only: bool = False
    sub_path: str = ""
    sub_path_expr: str = ""


class ContainerSecurity(Wire, frozen=True):
    """As whom a container runs, and what else it asks for."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    privileged: bool = False
    read_only_root_filesystem: bool = False
    allow_privilege_escalation: bool | None = None
    capabilities: dict[str, Any] | None = None
    seccomp_profile: dict[str, Any] | None = None


class PodSecurity(Wire, frozen=True):
    """As whom the containers run unless they say otherwise."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    fs_group: int | None = None
    supplemental_groups: list[int] = []
    sysctls: list[dict[str, Any]] = []
    seccomp_profile: dict[str, Any] | None = None


class Container(Wire, frozen=True):
    """A container to run."""

    name: str
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    working_dir: str = ""
    env: list[EnvVar] = []
    env_from: list[EnvFrom] = []
    ports: list[ContainerPort] = []
    resources: ResourceRequirements = ResourceRequirements()
    volume_mounts: list[VolumeMount] = []
    restart_policy: str = ""
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle = Lifecycle()
    security_context: ContainerSecurity = ContainerSecurity()
    termination_message_path: str = "/dev/termination-log"
    termination_message_policy: str = "File"


class KeyToPath(Wire, frozen=True):
    """Where one key of a volume goes."""

    key: str
    path: str
    mode: int | None = None


class ConfigMapVolume(Wire, frozen=True):
    """A ConfigMap as files."""

    name: str = ""
    items: list[KeyToPath] = []
    default_mode: int = 0o644
    optional: bool = False


class SecretVolume(Wire, frozen=True):
    """A Secret as files; a projection calls it ``name``, a volume ``secretName``."""

    secret_name: str = ""
    name: str = ""
    items: list[KeyToPath] = []
    default_mode: int = 0o644
    optional: bool = False


class DownwardFile(Wire, frozen=True):
    """A field of the pod as a file."""

    path: str
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    mode: int | None = None


class DownwardVolume(Wire, frozen=True):
    """Fields of the pod as files."""

    items: list[DownwardFile] = []
    default_mode: int = 0o644


class TokenProjection(Wire, frozen=True):
    """A token of the pod's service account as a file."""

    path: str
    audience: str = ""
    expiration_seconds: int = 3600


class Projection(Wire, frozen=True):
    """One of the sources of a projected volume."""

    config_map: ConfigMapVolume | None = None
    secret: SecretVolume | None = None
    downward_api: DownwardVolume | None = field(default=None, name="downwardAPI")
    service_account_token: TokenProjection | None = None
    cluster_trust_bundle: dict[str, Any] | None = None


class ProjectedVolume(Wire, frozen=True):
    """Several sources as one directory."""

    sources: list[Projection] = []
    default_mode: int = 0o644


class EmptyDir(Wire, frozen=True):
    """A directory that lives as long as the pod."""

    medium: str = ""
    size_limit: Quantity | None = None


class HostPath(Wire, frozen=True):
    """A path of the host."""

    path: str
    type: str = ""


class ClaimVolume(Wire, frozen=True):
    """A PersistentVolumeClaim of the pod's namespace."""

    claim_name: str
    read_only: bool = False


class Volume(Wire, frozen=True):
    """A volume of the pod; at most one of the sources is set."""

    name: str
    empty_dir: EmptyDir | None = None
    host_path: HostPath | None = None
    config_map: ConfigMapVolume | None = None
    secret: SecretVolume | None = None
    downward_api: DownwardVolume | None = field(default=None, name="downwardAPI")
    projected: ProjectedVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None


class HostAlias(Wire, frozen=True):
    """Extra lines for the pod's hosts file."""

    ip: str
    hostnames: list[str] = []


class PodOS(Wire, frozen=True):
    """The operating system that a pod is for."""

    name: str = ""


class PodSpec(Wire, frozen=True):
    """What to run and how."""

    containers: list[Container] = []
    init_containers: list[Container] = []
    volumes: list[Volume] = []
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    overhead: dict[str, Quantity] = {}
    restart_policy: Literal["Always", "OnFailure", "Never"] = "Always"
    termination_grace_period_seconds: int = 30
    active_deadline_seconds: int | None = None
    hostname: str = ""
    subdomain: str = ""
    host_aliases: list[HostAlias] = []
    host_network: bool = False
    service_account_name: str = ""
    automount_service_account_token: bool | None = None
    security_context: PodSecurity = PodSecurity()
    os: PodOS | None = None
    readiness_gates: list[dict[str, str]] = []


class PodStatus(Wire, frozen=True):
    """What the server knows of the pod's state."""

    phase: str = "Pending"
    reason: str = ""
    conditions: list[Condition] = []
    pod_ip: str = field(default="", name="podIP")
    start_time: str | None = None
    init_container_statuses: list[ContainerStatus] = []
    container_statuses: list[ContainerStatus] = []


class Pod(Wire, frozen=True):
    """A pod to run."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


POD_RUNS = Resource("", "v1", "pods", "Pod", True, Pod)
"""Pods, read through the view of a node that runs them."""
