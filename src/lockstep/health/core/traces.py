"""From a dump of torch's flight recorder, as plain values, to what is known of the rank.

The recorder is a ring: what has been overwritten is known from ``pg_status`` alone, which names
groups by their number in the process; entries, and else the order of ``pg_config``, name them.

Launchers do this beside the ranks: it imports the standard library alone, and Python 3.9 runs it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any, Final

Json = Mapping[str, Any]
Facts = dict[str, Any]
"""A ``RankSeen``, or a part of one, as it is written."""

MOST_ENTRIES: Final = 100_000
MOST_WAITING: Final = 64
LONGEST: Final = 200
UNNAMED: Final = "?"
"""Before the number in its process of a group without a name: another's group may have it, too."""
_DONE: Final = "completed"


class NoDump(ValueError):
    """These values are no dump of a flight recorder."""


def facts(dump: object) -> Facts:
    """Return groups and waiting of a ``RankSeen``, as *dump* says.

    Raises:
        NoDump: when it is none, or one that contradicts itself.
    """
    if not isinstance(dump, Mapping) or not isinstance(dump.get("entries"), list):
        raise NoDump("no entries of a flight recorder")
    entries = [one for one in dump["entries"][-MOST_ENTRIES:] if isinstance(one, Mapping)]
    names = _names(dump, entries)
    status = dump.get("pg_status")
    far = _far(status if isinstance(status, Mapping) else {}, names, entries)
    config = dump.get("pg_config")
    of = _ranks(config if isinstance(config, Mapping) else {})
    told = status if isinstance(status, Mapping) else {}
    waiting = _waiting(entries, far, {n: _begun(told, names, n) for n in far})
    default = next((_group(one) for one in entries if _is_default(one)), "")
    if default and "" in of:
        # Gloo leaves the name out.
        of[default] = of.pop("")
    exchanged = _exchanged(entries)
    # A dump without anything is that of a rank that has begun nothing.
    known = {**dict.fromkeys((*of, *exchanged), (0, 0)), **far}
    groups = [
        {
            "group": name,
            "enqueued": enqueued,
            "completed": completed,
            "ranks": of.get(name, ""),
            **({"exchanged": exchanged[name]} if name in exchanged else {}),
        }
        for name, (enqueued, completed) in sorted(known.items() or {"": (0, 0)}.items())
    ]
    return {"groups": groups, "waiting": waiting}


def ranges(ranks: Iterable[int]) -> str:
    """Return ranks as ``0-3,8``."""
    parts: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def _names(dump: Json, entries: list[Json]) -> dict[str, str]:
    """Return the name of each group by its number in the process."""
    found = {str(one.get("pg_id")): _group(one) for one in entries}
    config, status = dump.get("pg_config"), dump.get("pg_status")
    if isinstance(config, Mapping) and isinstance(status, Mapping) and len(config) == len(status):
        order = sorted(config, key=lambda name: (len(str(name)), str(name)))
        numbers = sorted(status, key=lambda number: (len(str(number)), str(number)))
        pairs = {str(k): str(v) for k, v in zip(numbers, order)}  # noqa: B905 - for 3.9
        if all(pairs.get(number) == name for number, name in found.items()):
            return {**pairs, **found}
    return found


def _group(entry: Json) -> str:
    named = entry.get("process_group")
    if isinstance(named, (list, tuple)) and named and named[0] != "":
        return str(named[0])[:LONGEST]
    if "pg_id" in entry:
        return f"{UNNAMED}{entry['pg_id']}"[:LONGEST]
    return ""


def _is_default(entry: Json) -> bool:
    named = entry.get("process_group")
    return isinstance(named, (list, tuple)) and len(named) > 1 and named[1] == "default_pg"


def _far(status: Json, names: Mapping[str, str], entries: list[Json]) -> dict[str, tuple[int, int]]:
    """Return how far the rank has come in each group: enqueued, completed."""
    far: dict[str, tuple[int, int]] = {}
    for number, told in status.items():
        if isinstance(told, Mapping) and names.get(str(number)):
            enqueued = _int(told.get("last_enqueued_collective"))
            far[names[str(number)]] = enqueued, max(0, _int(told.get("last_completed_collective")))
    for one in entries:
        if one.get("is_p2p"):
            continue
        name, seq = _group(one), _int(one.get("collective_seq_id"))
        # Where no status tells it, all before the first that is there has been completed.
        enqueued, completed = far.get(name, (0, max(0, seq - 1)))
        far[name] = max(enqueued, seq), max(completed, seq if _done(one) else 0)
    return far


def _exchanged(entries: list[Json]) -> dict[str, int]:
    """Return the number of the last send or receive of each group."""
    found: dict[str, int] = {}
    for one in entries:
        if one.get("is_p2p"):
            name = _group(one)
            found[name] = max(found.get(name, 0), _int(one.get("p2p_seq_id")))
    return found


def _waiting(
    entries: list[Json],
    far: Mapping[str, tuple[int, int]],
    begun: Mapping[str, bool | None],
) -> list[Facts]:
    """Return the oldest unfinished collective of each group, and unfinished exchanges."""
    oldest: dict[str, Facts] = {}
    exchanges: list[Facts] = []
    for one in entries:
        if _done(one):
            continue
        work = _work(one)
        if work["p2p"]:
            exchanges.append(work)
        elif work["group"] not in oldest or work["seq"] < oldest[work["group"]]["seq"]:
            oldest[work["group"]] = work
    for name, (enqueued, completed) in far.items():
        there = oldest.get(name)
        if enqueued > completed and (there is None or there["seq"] > completed + 1):
            # Begun before what the ring still holds.
            oldest[name] = {"group": name, "seq": completed + 1, "op": "", "started": begun[name]}
        elif there is not None and there["seq"] <= completed:
            del oldest[name]
    return [*oldest.values(), *exchanges][:MOST_WAITING]


def _begun(status: Json, names: Mapping[str, str], group: str) -> bool | None:
    """Say whether the device has begun what it has not completed; None where nothing tells it."""
    for number, told in status.items():
        if names.get(str(number)) == group and isinstance(told, Mapping):
            started = _int(told.get("last_started_collective"))
            return None if started < 0 else started > _int(told.get("last_completed_collective"))
    return None


def _work(entry: Json) -> Facts:
    p2p = bool(entry.get("is_p2p"))
    state = entry.get("state")
    op = str(entry.get("profiling_name", "")).partition(":")[2] or str(
        entry.get("profiling_name", "")
    )
    shape = f"{entry.get('input_dtypes', '')}{entry.get('input_sizes', '')}"
    on_device = not str(entry.get("profiling_name", "")).startswith(("gloo", "mpi", "ucc"))
    return {
        "group": _group(entry),
        "seq": _int(entry.get("p2p_seq_id" if p2p else "collective_seq_id")),
        "op": op[:LONGEST],
        "shape": shape[:LONGEST],
        "started": state == "started" if on_device else None,
        "p2p": p2p,
    }


def _done(entry: Json) -> bool:
    return entry.get("state") == _DONE or bool(entry.get("retired"))


def _ranks(config: Json) -> dict[str, str]:
    """Return the members of each group; a text in Python's way of writing lists, or a list."""
    found: dict[str, str] = {}
    for name, told in config.items():
        ranks = told.get("ranks") if isinstance(told, Mapping) else None
        if isinstance(ranks, str) and len(ranks) < 1 << 20:
            try:
                ranks = ast.literal_eval(ranks)
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
        if isinstance(ranks, list) and ranks and all(isinstance(r, int) and r >= 0 for r in ranks):
            found[str(name)] = ranges(ranks)
    return found


def _int(value: object) -> int:
    try:
        return int(value)  # type: ignore[call-overload,no-any-return]
    except (TypeError, ValueError):
        return 0
