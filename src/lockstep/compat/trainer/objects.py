"""TrainJobs and their runtimes, as far as they are honoured."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from lockstep.api.wire import Json
from lockstep.compat.translation import Strict

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Processes = str | int


class RuntimeRef(Strict, frozen=True):
    """Which runtime the job takes."""

    name: Annotated[str, Meta(min_length=1)]
    api_group: str = "trainer.kubeflow.org"
    kind: Literal["ClusterTrainingRuntime", "TrainingRuntime"] = "ClusterTrainingRuntime"


class Source(Strict, frozen=True):
    """A dataset or a model that an initializer fetches."""

    storage_uri: str = ""
    env: list[Json] = []
    secret_ref: Json | None = None


class Initializer(Strict, frozen=True):
    """What is fetched before the training begins."""

    dataset: Source | None = None
    model: Source | None = None


class Trainer(Strict, frozen=True):
    """What the nodes run, in place of what the runtime says."""

    image: str = ""
    command: list[str] = []
    args: list[str] = []
    env: list[Json] = []
    num_nodes: Positive | None = None
    resources_per_node: Json | None = None
    num_proc_per_node: Processes | None = None


class TargetJob(Strict, frozen=True):
    """A replicated job of the runtime."""

    name: str


class PodOverride(Strict, frozen=True):
    """Changes to the pods of some of the runtime's jobs."""

    target_jobs: Annotated[list[TargetJob], Meta(min_length=1)]
    metadata: Json = {}
    spec: Json = {}


class Template(Strict, frozen=True):
    """An object that is made: a JobSet, or a Job of it."""

    metadata: Json = {}
    spec: Json = {}


class JobPatch(Strict, frozen=True):
    """Changes to a replicated job of the runtime: the template is that of a Job."""

    name: str
    template: Template = Template()


class SetPatch(Strict, frozen=True):
    """Changes to the jobs of the runtime."""

    replicated_jobs: list[JobPatch] = []


class TemplatePatch(Strict, frozen=True):
    """Changes to the JobSet that is made."""

    metadata: Json = {}
    spec: SetPatch = SetPatch()


class SpecPatch(Strict, frozen=True):
    """Changes to a runtime."""

    template: TemplatePatch = TemplatePatch()


class RuntimePatch(Strict, frozen=True):
    """Changes of one manager."""

    manager: Annotated[str, Meta(min_length=1)]
    time: str = ""
    training_runtime_spec: SpecPatch = SpecPatch()


class TrainJobSpec(Strict, frozen=True):
    """What a TrainJob says."""

    runtime_ref: RuntimeRef
    initializer: Initializer | None = None
    trainer: Trainer | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    pod_template_overrides: list[PodOverride] = []
    runtime_patches: list[RuntimePatch] = []
    suspend: bool | None = None
    managed_by: str | None = None
    active_deadline_seconds: Count | None = None


class Torch(Strict, frozen=True):
    """Ranks by torchrun."""

    num_proc_per_node: Processes | None = None


class Mpi(Strict, frozen=True):
    """Ranks by mpirun."""

    num_proc_per_node: Positive | None = None
    mpi_implementation: Literal["OpenMPI", "Intel", "MPICH", ""] = field(
        default="", name="mpiImplementation"
    )
    ssh_auth_mount_path: str = ""
    run_launcher_as_node: bool = False


class Policy(Strict, frozen=True):
    """By which framework the nodes find together."""

    num_nodes: Positive | None = None
    torch: Torch | None = None
    mpi: Mpi | None = None
    jax: Json | None = None
    xgboost: Json | None = None


class RuntimeSpec(Strict, frozen=True):
    """What a runtime says.

    All pods of a job are placed at once, so that any policy about groups of pods is met but one
    about the network, which is taken over.
    """

    template: Template
    ml_policy: Policy | None = None
    pod_group_policy: Json | None = None
