"""The fields of Fluid's kinds that are read, and the statuses that are written."""

from __future__ import annotations

from typing import Final

from msgspec import field

from lockstep.api.meta import ObjectMeta
from lockstep.api.resource import Resource
from lockstep.api.wire import Json, Wire
from lockstep.compat.fluid.kinds import GROUP, RUNTIMES, VERSION


class Mount(Wire, frozen=True):
    """A source of a dataset."""

    mount_point: str = ""
    name: str = ""
    path: str = ""
    read_only: bool = False
    shared: bool = False
    options: dict[str, str] = {}
    encrypt_options: list[Json] = []


class DatasetSpec(Wire, frozen=True):
    """Where the files come from and who may use them how."""

    mounts: list[Mount] = []
    access_modes: list[str] = []
    node_affinity: Json | None = None
    placement: str = ""
    owner: Json = {}
    tolerations: list[Json] = []
    data_restore_location: Json = {}
    shared_options: dict[str, str] = {}
    shared_encrypt_options: list[Json] = []


class Condition(Wire, frozen=True):
    """One aspect of a dataset's or an operation's state, in Fluid's shape."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_update_time: str = ""
    last_transition_time: str = ""
    last_probe_time: str = ""


class DatasetStatus(Wire, frozen=True):
    """How a dataset is."""

    phase: str = ""
    ufs_total: str = ""
    file_num: str = ""
    cache_states: dict[str, str] = {}
    conditions: list[Condition] = []
    mounts: list[Json] = []
    runtimes: list[Json] = []
    dataset_ref: list[str] = []


class Dataset(Wire, frozen=True):
    """Files from one or more sources under one name."""

    metadata: ObjectMeta
    spec: DatasetSpec = DatasetSpec()
    status: DatasetStatus = DatasetStatus()
    api_version: str = f"{GROUP}/{VERSION}"
    kind: str = "Dataset"


class RuntimeStatus(Wire, frozen=True):
    """How a runtime is."""

    worker_phase: str = ""
    fuse_phase: str = ""
    current_worker_number_scheduled: int = 0
    desired_worker_number_scheduled: int = 0
    selector: str = ""
    conditions: list[Condition] = []


class Runtime(Wire, frozen=True):
    """A cache for the dataset of the same name; what engines differ in stays a plain tree."""

    metadata: ObjectMeta
    spec: Json = {}
    status: RuntimeStatus = RuntimeStatus()
    api_version: str = f"{GROUP}/{VERSION}"
    kind: str = ""


class DatasetName(Wire, frozen=True):
    """Which dataset is meant."""

    name: str = ""
    namespace: str = ""


class Target(Wire, frozen=True):
    """A path to warm, and on how many nodes; 0 is all that cache the dataset."""

    path: str = "/"
    replicas: int = 0


class Carrier(Wire, frozen=True, kw_only=True):
    """How Fluid would run the pods of an operation; read to be named, not honoured."""

    image: str = ""
    image_tag: str = ""
    run_as: Json = {}
    block: bool = False
    runtime_type: str = ""
    pod_metadata: Json = {}
    affinity: Json = {}
    tolerations: list[Json] = []
    node_selector: dict[str, str] = {}
    scheduler_name: str = ""
    resources: Json = {}
    parallel_options: dict[str, str] = {}
    ttl_seconds_after_finished: int | None = None
    policy: str = "Once"
    schedule: str = ""


class DataLoadSpec(Carrier, frozen=True):
    """What to bring into the cache."""

    dataset: DatasetName = DatasetName()
    load_metadata: bool = False
    target: list[Target] = []
    options: dict[str, str] = {}
    run_after: RunAfter | None = None


class RunAfter(Wire, frozen=True):
    """An operation of the same namespace that has to be over first."""

    kind: str = ""
    name: str = ""


class OperationStatus(Wire, frozen=True):
    """How an operation is."""

    phase: str = ""
    duration: str = ""
    conditions: list[Condition] = []
    infos: dict[str, str] = {}
    started_at: str = ""
    last_schedule_time: str = ""
    last_successful_time: str = ""
    waiting_for: dict[str, str] = {}


class DataLoad(Wire, frozen=True):
    """A warm-up of a dataset."""

    metadata: ObjectMeta
    spec: DataLoadSpec = DataLoadSpec()
    status: OperationStatus = OperationStatus()
    api_version: str = f"{GROUP}/{VERSION}"
    kind: str = "DataLoad"


class ProcessedDataset(Wire, frozen=True):
    """The dataset that is processed, and where its files are shown."""

    name: str = ""
    namespace: str = ""
    mount_path: str = ""
    sub_path: str = ""


class DataProcessSpec(Carrier, frozen=True):
    """What to run over a dataset: a pod's spec, or a script."""

    dataset: ProcessedDataset = ProcessedDataset()
    processor: Json = {}
    run_after: RunAfter | None = None


class DataProcess(Wire, frozen=True):
    """A program of the user's own over a dataset."""

    metadata: ObjectMeta
    spec: DataProcessSpec = DataProcessSpec()
    status: OperationStatus = OperationStatus()
    api_version: str = f"{GROUP}/{VERSION}"
    kind: str = "DataProcess"


class MigratedDataset(Wire, frozen=True):
    """A dataset that files go to or come from."""

    name: str = ""
    namespace: str = ""
    path: str = ""


class Storage(Wire, frozen=True):
    """A store beside the datasets."""

    uri: str = ""
    options: dict[str, str] = {}
    encrypt_options: list[Json] = []


class End(Wire, frozen=True):
    """Where files come from, or go to: one of both."""

    dataset: MigratedDataset | None = None
    external_storage: Storage | None = None


class DataMigrateSpec(Carrier, frozen=True):
    """What to copy where."""

    source: End = field(default=End(), name="from")
    to: End = End()
    parallelism: int = 1
    options: dict[str, str] = {}
    run_after: RunAfter | None = None


class DataMigrate(Wire, frozen=True):
    """A copy of files between a dataset and a store, or another dataset."""

    metadata: ObjectMeta
    spec: DataMigrateSpec = DataMigrateSpec()
    status: OperationStatus = OperationStatus()
    api_version: str = f"{GROUP}/{VERSION}"
    kind: str = "DataMigrate"


class DataBackupSpec(Carrier, frozen=True):
    """Of which dataset the listing is written where."""

    dataset: str = ""
    backup_path: str = ""
    run_after: RunAfter | None = None


class DataBackup(Wire, frozen=True):
    """What a dataset holds, written down."""

    metadata: ObjectMeta
    spec: DataBackupSpec = DataBackupSpec()
    status: OperationStatus = OperationStatus()
    api_version: str = f"{GROUP}/{VERSION}"
    kind: str = "DataBackup"


DATASETS = Resource(GROUP, VERSION, "datasets", "Dataset", True, Dataset)
DATA_LOADS = Resource(GROUP, VERSION, "dataloads", "DataLoad", True, DataLoad)
DATA_PROCESSES = Resource(GROUP, VERSION, "dataprocesses", "DataProcess", True, DataProcess)
DATA_MIGRATES = Resource(GROUP, VERSION, "datamigrates", "DataMigrate", True, DataMigrate)
DATA_BACKUPS = Resource(GROUP, VERSION, "databackups", "DataBackup", True, DataBackup)
RUNTIME_KINDS: Final[tuple[Resource[Runtime], ...]] = tuple(
    Resource(GROUP, VERSION, plural, kind, True, Runtime) for kind, plural in RUNTIMES.items()
)
