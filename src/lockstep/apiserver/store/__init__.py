"""Where objects live: SQLite on disk, the newest state and a window of history in memory."""

from lockstep.apiserver.store.commits import StoreUnavailable
from lockstep.apiserver.store.history import Compacted
from lockstep.apiserver.store.log import LogInUse
from lockstep.apiserver.store.record import Event, Key, Meta, Owner, Record
from lockstep.apiserver.store.store import Store, Unstorable, require_few_values

__all__ = [
    "Compacted",
    "Event",
    "Key",
    "LogInUse",
    "Meta",
    "Owner",
    "Record",
    "Store",
    "StoreUnavailable",
    "Unstorable",
    "require_few_values",
]
