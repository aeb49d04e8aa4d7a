"""TrainingJob: what to run, on how many nodes, and what to do when it breaks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from lockstep.api.alignment import AlignmentWish
from lockstep.api.checkpoint import Checkpoint, LastCheckpoint, QueuedAt
from lockstep.api.duration import Duration
from lockstep.api.gang import Positive, Strategy, TopologyWish
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.names import API_VERSION, GROUP, VERSION
from lockstep.api.parallelism import Parallelism
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire


class Role(Wire, frozen=True):
    """Pods that are alike: workers, a launcher."""

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=40,
            pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            description="Name of the role; part of its pods' names.",
        ),
    ]
    template: Annotated[
        dict[str, Any], Meta(description="Pod template (metadata and spec), as in a Deployment.")
    ]
    replicas: Annotated[int, Meta(ge=1, description="Pods wanted.")] = 1
    min: Annotated[Positive | None, Meta(description="Fewest pods that the job can run with.")] = (
        None
    )
    max: Annotated[Positive | None, Meta(description="Most pods that the job can use.")] = None
    processes_per_node: Annotated[
        Positive | None,
        Meta(description="Processes a pod starts; by default one for each of its GPUs."),
    ] = None
    topology: Annotated[
        TopologyWish | None,
        Meta(description="How close together the role's pods must be, inside the job's wish."),
    ] = None
    alignment: Annotated[
        AlignmentWish | None,
        Meta(
            description="How close together the devices of each pod of the role must be, in place "
            "of what the job says; the template may say otherwise in its annotations."
        ),
    ] = None


class Recovery(Wire, frozen=True):
    """What to do when a pod fails."""

    max_restarts: Annotated[
        int, Meta(ge=0, description="Restarts after which the job has failed.")
    ] = 3


class RunPolicy(Wire, frozen=True):
    """When the job ends and what is left of it."""

    clean_pods: Annotated[
        Literal["None", "Running", "All"],
        Meta(description="Pods deleted at the end: none, those still running, or all."),
    ] = "Running"
    active_deadline: Annotated[
        Duration | None, Meta(description="Longest time from its first start to its end.")
    ] = None
    time_to_live: Annotated[
        Duration | None, Meta(description="Time after its end at which the job is deleted.")
    ] = None


class TrainingJobSpec(Wire, frozen=True):
    """What to run and how."""

    framework: Annotated[
        Literal["pytorch", "mpi", "plain"],
        Meta(description="Whose launch convention the pods get: pytorch, mpi or plain."),
    ]
    roles: Annotated[list[Role], Meta(min_length=1, max_length=16, description="The job's roles.")]
    queue: Annotated[str, Meta(description="Queue that the job waits in.")] = "default"
    priority_class_name: Annotated[str, Meta(description="PriorityClass of its pods.")] = ""
    topology: Annotated[
        TopologyWish | None, Meta(description="How close together its pods must be.")
    ] = None
    alignment: Annotated[
        AlignmentWish | None,
        Meta(
            description="How close together the devices of each pod must be; a role may say "
            "otherwise, and its template in its annotations."
        ),
    ] = None
    strategy: Annotated[
        Strategy | None,
        Meta(
            description="Fill nodes one after the other, use many, or leave the least that nobody "
            "can use; the queue's when left out."
        ),
    ] = None
    node_policy: Annotated[
        str,
        Meta(description="NodePolicy by which nodes are filled; the queue's when left out."),
    ] = ""
    parallelism: Annotated[
        Parallelism, Meta(description="How its ranks are split; they are laid out by that.")
    ] = Parallelism()
    checkpoint: Checkpoint | None = None
    recovery: Recovery = Recovery()
    run_policy: RunPolicy = RunPolicy()
    max_wait: Annotated[
        Duration | None, Meta(description="Longest time that the job waits for its place.")
    ] = None
    suspend: Annotated[bool, Meta(description="Give the job's place back and keep it.")] = False


class ReplicaStatus(Wire, frozen=True):
    """Pods of one role by state."""

    created: Annotated[
        int,
        Meta(description="Pods of this attempt that have existed; one of them missing is lost."),
    ] = 0
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0


Phase = Literal["Pending", "Starting", "Running", "Restarting", "Suspended", "Succeeded", "Failed"]


class TrainingJobStatus(Wire, frozen=True):
    """How far the job is."""

    phase: Phase = "Pending"
    message: Annotated[str, Meta(description="What the job waits for or why it ended.")] = ""
    restarts: int = 0
    attempt: Annotated[int, Meta(description="Number of the present set of pods, from 0.")] = 0
    failures_in_a_row: Annotated[
        int, Meta(description="Failures since the job last ran for a while; they set the back-off.")
    ] = 0
    retry_at: Annotated[
        str | None, Meta(description="When the pods of the next attempt are created.")
    ] = None
    replacing: Annotated[
        dict[str, str],
        Meta(description="Failures counted already: pods being replaced, with their uids."),
    ] = {}
    replica_statuses: dict[str, ReplicaStatus] = {}
    queued_at: QueuedAt = None
    last_checkpoint: LastCheckpoint = None
    start_time: str | None = None
    completion_time: str | None = None
    observed_generation: int = 0
    conditions: list[Condition] = []


class TrainingJob(Wire, frozen=True):
    """A training job."""

    metadata: ObjectMeta
    spec: TrainingJobSpec
    status: TrainingJobStatus = TrainingJobStatus()
    api_version: str = API_VERSION
    kind: str = "TrainingJob"


TRAINING_JOBS = Resource(GROUP, VERSION, "trainingjobs", "TrainingJob", True, TrainingJob)
