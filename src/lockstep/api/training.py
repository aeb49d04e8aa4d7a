"""TrainingJob: what to run, on how many nodes, and what to do when it breaks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from lockstep.api.alignment import AlignmentWish
from lockstep.api.checkpoint import Checkpoint, LastCheckpoint, QueuedAt
from lockstep.api.code import Code
from lockstep.api.copies import Copies
from lockstep.api.diagnosis import Diagnosis
from lockstep.api.duration import Duration
from lockstep.api.gang import Positive, Strategy, TopologyWish
from lockstep.api.goodput import Goodput
from lockstep.api.job_history import History
from lockstep.api.meta import Condition, OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.parallelism import Parallelism
from lockstep.api.resource import Resource
from lockstep.api.spot import SpotUse
from lockstep.api.wire import Wire

FrameworkName = Literal[
    "pytorch",
    "megatron",
    "deepspeed",
    "mpi",
    "horovod",
    "plain",
    "tensorflow",
    "jax",
    "xgboost",
    "paddle",
    "mxnet",
    "byteps",
    "ray",
    "spark",
    "flink",
    "trino",
]


class Identity(Wire, frozen=True):
    """What tells a pod from the others of its role, as another system's users know it.

    In each value ``{job}``, ``{role}``, ``{index}`` and ``{rank}`` stand for the pod's own, and
    with a block ``{block}`` and ``{member}``: of blocks of 2 the pod of index 5 is member 1 of
    block 2.
    """

    block: Positive | None = None
    """Pods of a block, where they are numbered by blocks: {block}, {member}."""

    name: str = "{job}-{role}-{index}"
    """Name of the pod and its host; {job}-{role}-{index} by default."""
    labels: dict[str, str] = {}
    """Labels of the pod."""
    annotations: dict[str, str] = {}
    """Annotations of the pod."""
    env: dict[str, str] = {}
    """Variables of its containers; they go before the framework's."""


class After(Wire, frozen=True):
    """A role that goes before another."""

    role: Annotated[str, Meta(min_length=1)]
    """Role that goes before."""
    condition: Literal["Ready", "Complete"] = "Ready"
    """How far all of its pods must be: ready, or done."""


class Role(Wire, frozen=True):
    """Pods that are alike: workers, a launcher."""

    name: Annotated[
        str, Meta(min_length=1, max_length=40, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    ]
    """Name of the role; part of its pods' names."""
    template: dict[str, Any]
    """Pod template (metadata and spec), as in a Deployment."""
    replicas: Annotated[int, Meta(ge=1)] = 1
    """Pods wanted."""
    min: Positive | None = None
    """Fewest pods that the job can run with."""
    max: Positive | None = None
    """Most pods that the job can use."""
    omit: list[Annotated[int, Meta(ge=0)]] = []
    """Indices that no pod has: with 1 the pods of two are 0 and 2."""
    processes_per_node: Positive | None = None
    """Processes a pod starts; by default one for each of its GPUs."""
    topology: TopologyWish | None = None
    """How close together the role's pods must be, inside the job's wish."""
    alignment: AlignmentWish | None = None
    """How close together the devices of each pod of the role must be, in place of what the job
    says; the template may say otherwise in its annotations."""
    after: list[After] = []
    """Roles that go before: pods of this one are created, and placed, once all of those are ready
    or done; by default all roles are placed together."""
    identity: Identity = Identity()
    """Names, labels and variables of each pod; {job}, {role}, {index} and {rank} in them stand for
    its own."""


class FailureRule(Wire, frozen=True):
    """What to do about failures of a sort."""

    action: Literal["Fail", "Restart", "RestartUncounted"]
    """Fail: the job has failed. Restart: as without the rule. RestartUncounted: the restart does
    not count towards maxRestarts."""
    roles: list[str] = []
    """Roles whose pods it is about; all when left out."""
    exit_codes: list[Annotated[str, Meta(pattern="^[0-9]+(-[0-9]+)?$")]] = []
    """Exit codes, such as 42 or 1-127; any failure when left out."""


class Recovery(Wire, frozen=True):
    """What to do when a pod fails."""

    rules: list[FailureRule] = []
    """The first that fits what failed first is followed."""

    max_restarts: Annotated[int, Meta(ge=0)] = 3
    """Restarts after which the job has failed."""
    spot_notice: Annotated[str, Meta(pattern="^(|aws|gcp|azure|https?://.+)$")] = ""
    """Where launchers ask whether their machine goes away: aws, gcp or azure, or a URL that answers
    with a text once it does."""
    spares: Annotated[int, Meta(ge=0)] = 0
    """Pods beyond its size that stand by: one takes the place of a lost one."""
    capture: Literal["Auto", "None"] = "Auto"
    """Whether a torch program that does not call lockstep.train is kept at each step and goes on
    there after a fault: Auto tries it, None leaves it out."""


class RunPolicy(Wire, frozen=True):
    """When the job ends and what is left of it."""

    clean_pods: Literal["None", "Running", "All"] = "Running"
    """Pods deleted at the end: none, those still running, or all."""
    active_deadline: Duration | None = None
    """Longest time from its first start to its end."""
    time_to_live: Duration | None = None
    """Time after its end at which the job is deleted."""


class SuccessPolicy(Wire, frozen=True):
    """Whose success is the job's."""

    roles: Annotated[list[str], Meta(min_length=1)]
    """Roles whose pods decide; others may go on."""
    operator: Literal["All", "Any"] = "All"
    """All: every pod of them. Any: all pods of one, or of a block of one."""


class TrainingJobSpec(Wire, frozen=True):
    """What to run and how."""

    framework: FrameworkName
    """Whose launch convention the pods get."""
    roles: Annotated[list[Role], Meta(min_length=1, max_length=16)]
    """The job's roles."""
    queue: str = "default"
    """Queue that the job waits in."""
    priority_class_name: str = ""
    """PriorityClass of its pods."""
    topology: TopologyWish | None = None
    """How close together its pods must be."""
    alignment: AlignmentWish | None = None
    """How close together the devices of each pod must be; a role may say otherwise, and its
    template in its annotations."""
    strategy: Strategy | None = None
    """Fill nodes one after the other, use many, or leave the least that no pod can use; the queue's
    when left out."""
    node_policy: str = ""
    """NodePolicy by which nodes are filled; the queue's when left out."""
    spot: SpotUse = "Allowed"
    """Use of spot nodes, which their cloud may take back. Allowed: as of any other. AboveMin: the
    min of each role keeps off them, its pods beyond stand on them alone, and NodePools get them
    once the job runs. Never: all pods keep off."""
    parallelism: Parallelism = Parallelism()
    """How its ranks are split; they are laid out by that."""
    checkpoint: Checkpoint | None = None
    tensorboard: Annotated[str, Meta(pattern="^(|pvc://[^/]+(/.*)?|(s3|gs|az|https?)://.+)$")] = ""
    """Where it writes its events: pvc://CLAIM/DIRECTORY, or a store's address such as
    s3://BUCKET/DIRECTORY. The Tensorboard JOB-tensorboard shows them from its first start until the
    job is deleted."""
    code: Code | None = None
    """The directory that it was submitted from, which its pods run in."""
    launcher: Literal["Auto", "None"] = "Auto"
    """What starts its processes: Auto puts lockstep-run in front of the command of each main
    container where the framework has use for it; None leaves it out."""
    recovery: Recovery = Recovery()
    run_policy: RunPolicy = RunPolicy()
    success_policy: SuccessPolicy | None = None
    """Whose success is the job's; by default what its framework says."""
    ssh: bool = False
    """Give the pods keys to log in to each other, at /root/.ssh, where the framework does not
    already."""
    after: Annotated[list[str], Meta(max_length=100)] = []
    """Jobs of its namespace that must have succeeded before its pods are created; the name of an
    array stands for all its jobs. When one fails, it fails too."""
    max_wait: Duration | None = None
    """Longest time that the job waits for its place."""
    suspend: bool = False
    """Give the job's place back and keep it."""
    simulated: bool = False
    """Run on simulated nodes, where pods take their time and no command is executed."""


class ReplicaStatus(Wire, frozen=True):
    """Pods of one role by state."""

    created: int = 0
    """Pods of this attempt that have existed; one of them missing is lost."""
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0


class LastError(Wire, frozen=True):
    """What its ranks failed of last, to tell when they fail of it again."""

    error: str
    """How a rank ended, without what differs by rank."""
    step: int = -1
    """Steps that were finished by then; -1: not known."""


Phase = Literal[
    "Pending", "Starting", "Running", "Restarting", "Suspended", "Succeeded", "Failed", "Deleting"
]


class Seats(Wire, frozen=True):
    """Which pods hold the ranks, where these are not just those of the job's size."""

    replicas: int
    """The size that this is for; of another it is void."""
    pods: list[str]
    """Pods in the order of their ranks."""


class TrainingJobStatus(Wire, frozen=True):
    """How far the job is."""

    phase: Phase = "Pending"
    message: str = ""
    """What the job waits for or why it ended."""
    restarts: int = 0
    attempt: int = 0
    """Number of the present set of pods, from 0."""
    failures_in_a_row: int = 0
    """Failures since the job last ran for a while; they set the back-off."""
    retry_at: str | None = None
    """When the pods of the next attempt are created."""
    replacing: dict[str, str] = {}
    """Failures counted already: pods being replaced, with their uids."""
    replica_statuses: dict[str, ReplicaStatus] = {}
    generation: int = 0
    """Number of the present world of ranks, from 1; 0 without a launcher."""
    replicated: bool = False
    """Whether all ranks hold the same parameters, so that each can give them."""
    copies: Copies | None = None
    """What keeps the ranks' states in memory."""
    last_error: LastError | None = None
    goodput: Goodput = Goodput()
    history: History = History()
    seats: Seats | None = None
    diagnosis: Diagnosis | None = None
    """What was the matter when it last failed."""
    queued_at: QueuedAt = None
    last_checkpoint: LastCheckpoint = None
    start_time: str | None = None
    completion_time: str | None = None
    observed_generation: int = 0
    conditions: list[Condition] = []


class TrainingJob(OwnObject, frozen=True):
    """A training job."""

    spec: TrainingJobSpec
    status: TrainingJobStatus = TrainingJobStatus()
    kind: str = "TrainingJob"


TRAINING_JOBS = Resource(GROUP, VERSION, "trainingjobs", "TrainingJob", True, TrainingJob)
