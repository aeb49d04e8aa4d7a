"""Which of Fluid's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind, family

GROUP: Final = "data.fluid.io"
VERSION: Final = "v1alpha1"
_kind = family(GROUP, VERSION)

RUNTIMES: Final = {
    "AlluxioRuntime": "alluxioruntimes",
    "JindoRuntime": "jindoruntimes",
    "JuiceFSRuntime": "juicefsruntimes",
    "ThinRuntime": "thinruntimes",
    "EFCRuntime": "efcruntimes",
    "CacheRuntime": "cacheruntimes",
}
"""Kind and plural of every runtime; each means Lockstep's own cache."""

_RUNTIME_COLUMNS = (
    ("Worker Phase", "string", ".status.workerPhase"),
    ("Workers", "integer", ".status.currentWorkerNumberScheduled"),
)
_OPERATION_COLUMNS = (
    ("Dataset", "string", ".spec.dataset.name"),
    ("Phase", "string", ".status.phase"),
    ("Progress", "string", ".status.infos.progress"),
    ("Duration", "string", ".status.duration"),
)
_MIGRATE_COLUMNS = (
    ("Phase", "string", ".status.phase"),
    ("Duration", "string", ".status.duration"),
)
_BACKUP_COLUMNS = (("Dataset", "string", ".spec.dataset"), ("Phase", "string", ".status.phase"))
_SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.currentWorkerNumberScheduled",
    "labelSelectorPath": ".status.selector",
}

KINDS: Final[tuple[ForeignKind, ...]] = (
    _kind(
        "Dataset",
        "datasets",
        columns=(
            ("Ufs Total Size", "string", ".status.ufsTotal"),
            ("Cached", "string", ".status.cacheStates.cached"),
            ("Cache Capacity", "string", ".status.cacheStates.cacheCapacity"),
            ("Cached Percentage", "string", ".status.cacheStates.cachedPercentage"),
            ("Phase", "string", ".status.phase"),
        ),
    ),
    *(
        _kind(kind, plural, columns=_RUNTIME_COLUMNS, scale=_SCALE)
        for kind, plural in RUNTIMES.items()
    ),
    _kind("DataLoad", "dataloads", columns=_OPERATION_COLUMNS),
    _kind("DataProcess", "dataprocesses", columns=_OPERATION_COLUMNS),
    # Every engine means Lockstep's own cache: a class is kept as its user wrote it.
    _kind("CacheRuntimeClass", "cacheruntimeclasses", namespaced=False),
    _kind("DataMigrate", "datamigrates", columns=_MIGRATE_COLUMNS),
    _kind("DataBackup", "databackups", columns=_BACKUP_COLUMNS),
)
"""DataMigrate and DataBackup are not served yet, so the server does not take them either."""
