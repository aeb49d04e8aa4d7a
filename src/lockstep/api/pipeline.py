"""PipelineRun: a graph of steps, run once."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from lockstep.api import duration
from lockstep.api.duration import Duration
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import API_VERSION, GROUP, VERSION
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

    limit: Annotated[int, Meta(ge=0, le=1000, description="Tries beyond the first.")] = 0
    backoff: Annotated[
        Duration | None, Meta(description="Wait before the second try; none when left out.")
    ] = None
    factor: Annotated[int, Meta(ge=1, le=100, description="Each wait is so much longer.")] = 1
    longest: Annotated[Duration | None, Meta(description="Longest wait between two tries.")] = None
    when: Annotated[
        str,
        Meta(
            description="Try again only if this holds of `last` (exitCode, message); CEL. "
            "Always when left out."
        ),
    ] = ""


class Keep(Wire, frozen=True):
    """Whether the result of a step is kept and used again."""

    key: Annotated[
        str,
        Meta(
            description="What the result is kept under; by default image, command, code and "
            "the digests of the inputs."
        ),
    ] = ""
    longest: Annotated[
        Duration | None, Meta(description="Age at which it is no longer used; none: never.")
    ] = None


class Loop(Wire, frozen=True):
    """One step for each item of a list."""

    items: Annotated[str, Meta(description="The list: JSON, or `${{ ... }}` that gives one.")]
    parallelism: Annotated[int, Meta(ge=0, description="Most items at once; 0: no limit.")] = 0


class Task(Wire, frozen=True):
    """A place in a graph where a template runs."""

    name: Name
    template: Annotated[str, Meta(description="What runs here.")]
    arguments: Annotated[
        dict[str, Any],
        Meta(description="Values of the template's inputs; strings may hold `${{ CEL }}`."),
    ] = {}
    after: Annotated[
        list[str], Meta(description="Tasks that must be over first, beside those referred to.")
    ] = []
    needs: Annotated[
        str,
        Meta(
            description="What must hold of the tasks before it, as "
            "tasks['a'].state == 'Failed'; by default each has succeeded or was skipped."
        ),
    ] = ""
    when: Annotated[str, Meta(description="Skipped unless this holds; CEL.")] = ""
    exit: Annotated[
        bool,
        Meta(description="Runs after the tasks before it, also if they failed or the run stopped."),
    ] = False
    may_fail: Annotated[bool, Meta(description="Its failure is not the graph's.")] = False
    loop: Loop | None = None
    retry: Retry = Retry()
    keep: Annotated[
        Keep | None, Meta(description="Keep the result; the step always runs when left out.")
    ] = None
    gang: Annotated[
        str,
        Meta(
            description="Tasks of the graph with the same word are one gang: none of their pods "
            "starts before all have their place. A later try starts alone."
        ),
    ] = ""
    timeout: Annotated[
        TimeLimit | None,
        Meta(description="Longest time that a try runs; may be `${{ CEL }}` over `inputs`."),
    ] = None
    max_wait: Annotated[
        Duration | None, Meta(description="Longest time that the step waits for its place.")
    ] = None


class Graph(Wire, frozen=True):
    """Tasks that depend on each other."""

    tasks: list[Task]
    fail_fast: Annotated[
        bool, Meta(description="Start nothing more once a task has failed, but exit tasks.")
    ] = True
    parallelism: Annotated[int, Meta(ge=0, description="Most tasks at once; 0: no limit.")] = 0


class Fetch(Wire, frozen=True):
    """An artefact that is brought into the pod before its containers start."""

    artifact: Annotated[str, Meta(description="The artefact, as `${{ inputs.data }}`.")]
    path: Annotated[str, Meta(description="Absolute path of the file or directory.")]
    optional: Annotated[bool, Meta(description="Whether there may be none.")] = False
    mode: Annotated[
        int,
        Meta(
            description="Permissions of the file or directory, as 493 for 0755; 0: all may write.",
            ge=0,
            le=0o777,
        ),
    ] = 0
    recursive: Annotated[bool, Meta(description="Whether `mode` holds for all below, too.")] = False


class Output(Wire, frozen=True):
    """A file that a pod writes and that becomes a result of the step."""

    name: str
    path: Annotated[str, Meta(description="Absolute path of the file or directory.")]
    kind: Annotated[
        Literal["Text", "Json", "Artifact", "Executor"],
        Meta(
            description="Text and Json are parameters; an Artifact goes to the store; Executor "
            "is the file in which a KFP component writes all its results."
        ),
    ] = "Text"
    uri: Annotated[
        str, Meta(description="Where an artefact goes; by default below the run's root.")
    ] = ""
    type: Annotated[str, Meta(description="Type of the artefact, as system.Model.")] = ""
    optional: Annotated[bool, Meta(description="Whether it may be missing.")] = False
    default: Annotated[str, Meta(description="Text of a parameter that is missing.")] = ""


class PodStep(Wire, frozen=True):
    """A step that is a pod."""

    template: Annotated[
        dict[str, Any], Meta(description="Pod template; its strings may hold `${{ CEL }}`.")
    ]
    fetch: list[Fetch] = []
    outputs: list[Output] = []
    daemon: Annotated[
        bool,
        Meta(
            description="Over for the others once its containers are ready; it goes on until the "
            "graph around it is over. Its result `ip` is its address."
        ),
    ] = False
    patch: Annotated[
        list[str],
        Meta(
            description="Changes to the pod's spec as YAML or JSON with `${{ CEL }}`, merged as "
            "kubectl patch does: lists of named things by their names."
        ),
    ] = []
    shared: Annotated[
        list[str],
        Meta(description="Directories, empty at first, in which fetched files and outputs lie."),
    ] = []


class ObjectStep(Wire, frozen=True):
    """A step that is any other object: a job, a service, a model version."""

    object: Annotated[dict[str, Any], Meta(description="The object, with `${{ CEL }}` in it.")]
    action: Annotated[
        Literal["Create", "Apply", "Get", "Delete"],
        Meta(
            description="Create makes one that belongs to the run; Apply changes or makes one "
            "that stays; Get reads one; Delete removes one."
        ),
    ] = "Create"
    success: Annotated[
        str, Meta(description="When the step has succeeded: CEL over `object`; by default by kind.")
    ] = ""
    failure: Annotated[
        str, Meta(description="When it has failed: CEL over `object`; by default by kind.")
    ] = ""


class Suspend(Wire, frozen=True):
    """A step that waits: for a time, or until it is resumed."""

    duration: Annotated[
        Duration | None, Meta(description="How long; until resumed when left out.")
    ] = None


class Lock(Wire, frozen=True):
    """What only so many steps of the namespace's runs hold at once, from start to end."""

    name: Annotated[str, Meta(description="Steps that name the same share it; `${{ CEL }}`.")]
    limit: Annotated[int, Meta(ge=1, description="Most that hold it at once.")] = 1
    limit_from: Annotated[
        str, Meta(description="CONFIGMAP/KEY that holds the limit, in place of `limit`.")
    ] = ""


class Template(Wire, frozen=True):
    """What a task runs: one of graph, pod, object and suspend; none computes its outputs."""

    inputs: Annotated[list[Name], Meta(description="Inputs that must be given.")] = []
    defaults: Annotated[
        dict[str, Any], Meta(description="Inputs that may be given, and what they are else.")
    ] = {}
    outputs: Annotated[
        dict[str, Any],
        Meta(
            description="Results: of a graph from `tasks`, of an object from `object`, else from "
            "`inputs`. A pod's are what it writes."
        ),
    ] = {}
    exports: Annotated[
        dict[str, str],
        Meta(description="Results that the whole run knows: name here to name in `run.outputs`."),
    ] = {}
    locks: Annotated[list[Lock], Meta(description="What it holds while it runs, all at once.")] = []
    graph: Graph | None = None
    pod: PodStep | None = None
    object: ObjectStep | None = None
    suspend: Suspend | None = None


class Sweep(Wire, frozen=True):
    """When pods of steps are deleted; they go with their run when it says nothing."""

    strategy: Literal["OnPodCompletion", "OnPodSuccess", "OnRunCompletion", "OnRunSuccess"]
    delay: Annotated[Duration, Meta(description="How long after that.")] = "5s"
    labels: Annotated[dict[str, str], Meta(description="Only pods that have these.")] = {}


class PipelineRunSpec(Wire, frozen=True):
    """What to run, with what, where."""

    templates: Annotated[dict[str, Template], Meta(description="What tasks run, by name.")]
    entry: Annotated[str, Meta(description="Template that the run is.")] = "main"
    arguments: Annotated[dict[str, Any], Meta(description="Inputs of that template.")] = {}
    root: Annotated[str, Meta(description="Where artefacts are kept, as s3://BUCKET/PATH.")] = ""
    storage_secret: Annotated[
        str,
        Meta(
            description="Secret whose keys are the store's variables: AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL, AWS_REGION."
        ),
    ] = ""
    queue: Annotated[str, Meta(description="Queue of every step that names none.")] = "default"
    priority_class_name: Annotated[
        str, Meta(description="Priority class of steps that name none.")
    ] = ""
    service_account_name: Annotated[
        str, Meta(description="Service account of steps that name none.")
    ] = ""
    max_wait: Annotated[
        Duration | None, Meta(description="Longest time that a step waits for its place.")
    ] = None
    timeout: Annotated[Duration | None, Meta(description="Longest time that the run lasts.")] = None
    parallelism: Annotated[int, Meta(ge=0, description="Most steps at once; 0: no limit.")] = 0
    claims: Annotated[
        list[dict[str, Any]],
        Meta(
            description="Templates of PersistentVolumeClaims that the run makes at its start and "
            "that end with it; each is named RUN-NAME."
        ),
    ] = []
    sweep: Annotated[
        Sweep | None, Meta(description="Delete pods of steps before the run goes.")
    ] = None
    keep_results: Annotated[
        bool, Meta(description="Whether steps that ask for it use and leave kept results.")
    ] = True
    keep_longest: Annotated[
        Duration | None,
        Meta(description="Age at which results are no longer used, of steps that state none."),
    ] = None
    desired: Annotated[
        Literal["Running", "Suspended", "Stopped"],
        Meta(description="Suspended starts no further step; Stopped ends the run."),
    ] = "Running"
    retries: Annotated[
        int, Meta(ge=0, description="Raise it to run again what has not succeeded.")
    ] = 0
    resumed: Annotated[
        list[str], Meta(description="Suspended steps that may go on; `*` is all of them.")
    ] = []
    expires_after: Annotated[
        Duration | None, Meta(description="Time after its end at which the run is deleted.")
    ] = None


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
    faults: Annotated[int, Meta(description="Tries lost through no fault of the step's.")] = 0
    object: Annotated[str, Meta(description="Its pod, or KIND/NAME.")] = ""
    outputs: dict[str, Any] = {}
    kept_from: Annotated[
        str, Meta(description="Run and step whose result was used instead of running it.")
    ] = ""
    exit_code: int | None = None
    locks: Annotated[list[str], Meta(description="Locks that it holds.")] = []
    after: list[str] = []
    item: Annotated[str, Meta(description="Item of a loop, as JSON.")] = ""


class PipelineRunStatus(Wire, frozen=True):
    """How the run is doing."""

    phase: Literal["Pending", "Running", "Suspended", "Succeeded", "Failed", "Stopped"] = "Pending"
    message: str = ""
    started_at: str | None = None
    completion_time: str | None = None
    progress: Annotated[str, Meta(description="Steps that are over, of those known.")] = ""
    retries: Annotated[int, Meta(description="Value of spec.retries that was acted on.")] = 0
    outputs: dict[str, Any] = {}
    steps: Annotated[
        dict[str, StepStatus], Meta(description="By place: main.train; in order of their start.")
    ] = {}
    compressed: Annotated[
        str, Meta(description="In place of steps where they are many: zlib over JSON, base64.")
    ] = ""


class PipelineRun(Wire, frozen=True):
    """A graph of steps with parameters, artefacts, conditions, loops and retries, run once."""

    metadata: ObjectMeta
    spec: PipelineRunSpec
    status: PipelineRunStatus = PipelineRunStatus()
    api_version: str = API_VERSION
    kind: str = "PipelineRun"


PIPELINE_RUNS = Resource(GROUP, VERSION, "pipelineruns", "PipelineRun", True, PipelineRun)
