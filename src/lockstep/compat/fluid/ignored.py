"""Fields of Fluid's objects that are set and mean nothing here, by their paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lockstep.api.wire import Wire, to_builtins
from lockstep.compat.fluid.objects import (
    DataBackupSpec,
    DataLoadSpec,
    DataMigrateSpec,
    DataProcessSpec,
    DatasetSpec,
)

_ALL: Final[Mapping[str, Any]] = {}
"""A field that is honoured whole."""


def _each(names: str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), _ALL)


RUNTIME: Final[Mapping[str, Any]] = {
    **_each("replicas"),
    "tieredstore": {"levels": _each("mediumtype path quota quotaList high low")},
    "worker": {**_each("replicas"), "tieredStore": {"levels": _each("medium path quota high low")}},
    "fuse": {"options": _each("timeout")},
    "management": {"metadataSyncPolicy": _each("autoSync")},
    "data": _each("pin"),
}
_SPECS: Final[Mapping[type[Wire], Mapping[str, Any]]] = {
    DatasetSpec: _each("mounts accessModes nodeAffinity sharedOptions sharedEncryptOptions"),
    DataLoadSpec: {
        **_each("dataset loadMetadata target runAfter policy schedule"),
        "options": _each("rateLimit"),
    },
    DataMigrateSpec: _each("from to parallelism runAfter schedule"),
    DataProcessSpec: {
        **_each("dataset runAfter schedule"),
        "processor": {
            **_each("job serviceAccountName"),
            "script": _each("image imageTag command source env resources volumeMounts volumes"),
        },
    },
    DataBackupSpec: _each("dataset backupPath runAfter schedule"),
}
_USUAL: Final = {("policy", "Once"), ("policy", "Cron"), ("placement", "Shared")}


def ignored(tree: Mapping[str, Any], honoured: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the paths of what *tree* sets beside what is *honoured*, the outermost of each."""
    for name, value in sorted(tree.items()):
        if not value or (isinstance(value, str) and (name, value) in _USUAL):
            continue
        known, path = honoured.get(name), f"{above}{name}"
        if known is None:
            yield path
        elif known and isinstance(value, dict):
            yield from ignored(value, known, f"{path}.")
        elif known and isinstance(value, list):
            yield from dict.fromkeys(p for one in value for p in ignored(one, known, f"{path}[]."))


def ignored_of(spec: Wire) -> list[str]:
    """Return the fields of a dataset's or an operation's *spec* that mean nothing here."""
    return list(ignored(to_builtins(spec), _SPECS[type(spec)]))
