"""PipelineRun: a graph of steps, run once."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from lockstep.api import duration
from lockstep.api.duration import Duration
from lockstep.api.meta import OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire

RUN_LABEL = "lockstep.dev/pipeline-run"
KEPT_LOGS = "pipeline:{}"
"""What nodes call a run whose pods are gone when they are asked for logs; no job is called so."""
"""On what a step makes: the run that it belongs to."""
STEP_ANNOTATION = "lockstep.dev/step"
"""On what a step makes: the step's place in its run, as ``main.train``."""
LOCKS_ANNOTATION = "lockstep.dev/locks"
"""On a step's pod: the locks that it and the graphs around it hold, as JSON by holder."""
KEPT_LABEL = "lockstep.dev/kept-result"
"""``true`` on a ConfigMap that keeps what a step gave."""

NAME = r"^[A-Za-z0-9]([-_A-Za-z0-9]*[A-Za-z0-9])?$"
Name = Annotated[str, Meta(pattern=NAME, max_length=128)]
StepPhase = Literal[
    "Waiting", "Pending", "Running", "Succeeded", "Failed", "Skipped", "Omitted", "Stopped"
]
ENDED: frozenset[str] = frozenset({"Succeeded", "Failed", "Skipped", "Omitted", "Stopped"})


TimeLimit = Annotated[str, Meta(pattern=duration.PATTERN + r"|^\$\{\{.*\}\}$")]


class Retry(Wire, frozen=True):
    """How often and how soon a failed step is tried again."""

    limit: Annotated[int, Meta(ge=0, le=1000)] = 0
    """Tries beyond the first."""
    backoff: Duration | None = None
    """Wait before the second try; none when left out."""
    factor: Annotated[int, Meta(ge=1, le=100)] = 1
    """Each wait is so much longer."""
    longest: Duration | None = None
    """Longest wait between two tries."""
    when: str = ""
    """Try again only if this holds of `last` (exitCode, message); CEL. Always when left out."""


class Keep(Wire, frozen=True):
    """Whether the result of a step is kept and used again."""

    key: str = ""
    """What the result is kept under; by default image, command, code and the digests of the inputs.
    """
    longest: Duration | None = None
    """Age at which it is no longer used; none: never."""


class Loop(Wire, frozen=True):
    """One step for each item of a list."""

    items: str
    """The list: JSON, or `${{ ... }}` that gives one."""
    parallelism: Annotated[int, Meta(ge=0)] = 0
    """Most items at once; 0: no limit."""


class Task(Wire, frozen=True):
    """A place in a graph where a template runs."""

    name: Name
    template: str
    """What runs here."""
    arguments: dict[str, Any] = {}
    """Values of the template's inputs; strings may hold `${{ CEL }}`."""
    after: list[str] = []
    """Tasks that must be over first, beside those referred to."""
    needs: str = ""
    """What must hold of the tasks before it, as tasks['a'].state == 'Failed'; by default each has
    succeeded or was skipped."""
    when: str = ""
    """Skipped unless this holds; CEL."""
    exit: bool = False
    """Runs after the tasks before it, also if they failed or the run stopped."""
    may_fail: bool = False
    """Its failure is not the graph's."""
    loop: Loop | None = None
    retry: Retry = Retry()
    keep: Keep | None = None
    """Keep the result; the step always runs when left out."""
    gang: str = ""
    """Tasks of the graph with the same word are one gang: none of their pods starts before all have
    their place. A later try starts alone."""
    timeout: TimeLimit | None = None
    """Longest time that a try runs; may be `${{ CEL }}` over `inputs`."""
    max_wait: Duration | None = None
    """Longest time that the step waits for its place."""


class Graph(Wire, frozen=True):
    """Tasks that depend on each other."""

    tasks: list[Task]
    fail_fast: bool = True
    """Start nothing more once a task has failed, but exit tasks."""
    parallelism: Annotated[int, Meta(ge=0)] = 0
    """Most tasks at once; 0: no limit."""


class Fetch(Wire, frozen=True):
    """An artefact that is brought into the pod before its containers start."""

    artifact: str
    """The artefact, as `${{ inputs.data }}`."""
    path: str
    """Absolute path of the file or directory."""
    optional: bool = False
    """Whether there may be none."""
    mode: Annotated[int, Meta(ge=0, le=0o777)] = 0
    """Permissions of the file or directory, as 493 for 0755; 0: all may write."""
    recursive: bool = False
    """Whether `mode` holds for all below, too."""


class Output(Wire, frozen=True):
    """A file that a pod writes and that becomes a result of the step."""

    name: str
    path: str
    """Absolute path of the file or directory."""
    kind: Literal["Text", "Json", "Artifact", "Executor"] = "Text"
    """Text and Json are parameters; an Artifact goes to the store; Executor is the file in which a
    KFP component writes all its results."""
    uri: str = ""
    """Where an artefact goes; by default below the run's root."""
    type: str = ""
    """Type of the artefact, as system.Model."""
    optional: bool = False
    """Whether it may be missing."""
    default: str = ""
    """Text of a parameter that is missing."""


class PodStep(Wire, frozen=True):
    """A step that is a pod."""

    template: dict[str, Any]
    """Pod template; its strings may hold `${{ CEL }}`."""
    fetch: list[Fetch] = []
    outputs: list[Output] = []
    daemon: bool = False
    """Over for the others once its containers are ready; it goes on until the graph around it is
    over. Its result `ip` is its address."""
    patch: list[str] = []
    """Changes to the pod's spec as YAML or JSON with `${{ CEL }}`, merged as kubectl patch does:
    lists of named things by their names."""
    shared: list[str] = []
    """Directories, empty at first, in which fetched files and outputs lie."""


class ObjectStep(Wire, frozen=True):
    """A step that is any other object: a job, a service, a model version."""

    object: dict[str, Any]
    """The object, with `${{ CEL }}` in it."""
    action: Literal["Create", "Apply", "Get", "Delete"] = "Create"
    """Create makes one that belongs to the run; Apply changes or makes one that stays; Get reads
    one; Delete removes one."""
    success: str = ""
    """When the step has succeeded: CEL over `object`; by default by kind."""
    failure: str = ""
    """When it has failed: CEL over `object`; by default by kind."""


class Suspend(Wire, frozen=True):
    """A step that waits: for a time, or until it is resumed."""

    duration: Duration | None = None
    """How long; until resumed when left out."""


class Lock(Wire, frozen=True):
    """What only so many steps of the namespace's runs hold at once, from start to end."""

    name: str
    """Steps that name the same share it; `${{ CEL }}`."""
    limit: Annotated[int, Meta(ge=1)] = 1
    """Most that hold it at once."""
    limit_from: str = ""
    """CONFIGMAP/KEY that holds the limit, in place of `limit`."""


class Template(Wire, frozen=True):
    """What a task runs: one of graph, pod, object and suspend; none computes its outputs."""

    inputs: list[Name] = []
    """Inputs that must be given."""
    defaults: dict[str, Any] = {}
    """Inputs that may be given, and what they are else."""
    outputs: dict[str, Any] = {}
    """Results: of a graph from `tasks`, of an object from `object`, else from `inputs`. A pod's are
    what it writes."""
    exports: dict[str, str] = {}
    """Results that the whole run knows: name here to name in `run.outputs`."""
    locks: list[Lock] = []
    """What it holds while it runs, all at once."""
    graph: Graph | None = None
    pod: PodStep | None = None
    object: ObjectStep | None = None
    suspend: Suspend | None = None


class Sweep(Wire, frozen=True):
    """When pods of steps are deleted; they go with their run when it says nothing."""

    strategy: Literal["OnPodCompletion", "OnPodSuccess", "OnRunCompletion", "OnRunSuccess"]
    delay: Duration = "5s"
    """How long after that."""
    labels: dict[str, str] = {}
    """Only pods that have these."""


class PipelineRunSpec(Wire, frozen=True):
    """What to run, with what, where."""

    templates: dict[str, Template]
    """What tasks run, by name."""
    entry: str = "main"
    """Template that the run is."""
    arguments: dict[str, Any] = {}
    """Inputs of that template."""
    root: str = ""
    """Where artefacts are kept, as s3://BUCKET/PATH."""
    storage_secret: str = ""
    """Secret whose keys are the store's variables: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
    AWS_ENDPOINT_URL, AWS_REGION."""
    queue: str = "default"
    """Queue of every step that names none."""
    priority_class_name: str = ""
    """Priority class of steps that name none."""
    service_account_name: str = ""
    """Service account of steps that name none."""
    max_wait: Duration | None = None
    """Longest time that a step waits for its place."""
    timeout: Duration | None = None
    """Longest time that the run lasts."""
    parallelism: Annotated[int, Meta(ge=0)] = 0
    """Most steps at once; 0: no limit."""
    claims: list[dict[str, Any]] = []
    """Templates of PersistentVolumeClaims that the run makes at its start and that end with it;
    each is named RUN-NAME."""
    sweep: Sweep | None = None
    """Delete pods of steps before the run goes."""
    keep_results: bool = True
    """Whether steps that ask for it use and leave kept results."""
    keep_longest: Duration | None = None
    """Age at which results are no longer used, of steps that state none."""
    desired: Literal["Running", "Suspended", "Stopped"] = "Running"
    """Suspended starts no further step; Stopped ends the run."""
    retries: Annotated[int, Meta(ge=0)] = 0
    """Raise it to run again what has not succeeded."""
    resumed: list[str] = []
    """Suspended steps that may go on; `*` is all of them."""
    expires_after: Duration | None = None
    """Time after its end at which the run is deleted."""


class StepStatus(Wire, frozen=True):
    """How one step is doing."""

    name: str = ""
    template: str = ""
    kind: Literal["Pod", "Object", "Graph", "Loop", "Suspend", "Values"] = "Pod"
    phase: StepPhase = "Waiting"
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None
    attempt: int = 0
    faults: int = 0
    """Tries lost through no fault of the step's."""
    object: str = ""
    """Its pod, or KIND/NAME."""
    outputs: dict[str, Any] = {}
    kept_from: str = ""
    """Run and step whose result was used instead of running it."""
    exit_code: int | None = None
    locks: list[str] = []
    """Locks that it holds."""
    after: list[str] = []
    item: str = ""
    """Item of a loop, as JSON."""


class PipelineRunStatus(Wire, frozen=True):
    """How the run is doing."""

    phase: Literal["Pending", "Running", "Suspended", "Succeeded", "Failed", "Stopped"] = "Pending"
    message: str = ""
    started_at: str | None = None
    completion_time: str | None = None
    progress: str = ""
    """Steps that are over, of those known."""
    retries: int = 0
    """Value of spec.retries that was acted on."""
    outputs: dict[str, Any] = {}
    steps: dict[str, StepStatus] = {}
    """By place: main.train; in order of their start."""
    compressed: str = ""
    """In place of steps where they are many: zlib over JSON, base64."""


class PipelineRun(OwnObject, frozen=True):
    """A graph of steps with parameters, artefacts, conditions, loops and retries, run once."""

    spec: PipelineRunSpec
    status: PipelineRunStatus = PipelineRunStatus()
    kind: str = "PipelineRun"


PIPELINE_RUNS = Resource(GROUP, VERSION, "pipelineruns", "PipelineRun", True, PipelineRun)
