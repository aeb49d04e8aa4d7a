"""Files of dumps as they are found: of many versions and forms, some missing, cut or renamed.

Facts that tell the culprit are taken away and none is added, so a verdict may fall silent; it may
not name another rank.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import random
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from tests.support.stuck_worlds import NOBODY, Hang

Json = dict[str, Any]
Form = Literal["torch-2.4", "torch-2.5", "json", "json-2.13", "text", "gloo"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
Change = Literal["whole", "missing", "cut", "cut culprit", "hashed", "unnamed", "wrapped", "clocks"]
CHANGES: Final[tuple[Change, ...]] = get_args(Change)
LOSE: Final = ("missing", "cut", "cut culprit")
TOGETHER: Final = ("missing", "cut", "hashed", "wrapped", "clocks")
NAMES: Final = (
    "nccl_trace_rank_{}",
    "comm_lib_trace_rank_{}",
    "trace_{:05d}",
    "{}",
    "rank{}.json",
    "node-7_rank-{}_of_512.pickle",
    "dump.Rank_{}.txt",
)


@dataclass
class Found:
    """A folder of dumps."""

    form: Form
    changes: tuple[Change, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    world: int = 0
    """Number of all ranks, where the asker gives it."""


def derived(stuck: Hang, seed: int, several: int = 1) -> Found:
    """Return the dumps of a job that hangs in a form and with changes drawn by *seed*.

    There are as many of them as *several* says, of those that can be made together.
    """
    draw = random.Random(seed)  # noqa: S311 - to be drawn again
    # Where all wait inside of one collective, a lost dump is as one that has not come.
    changes = [one for one in CHANGES if stuck.kind not in NOBODY or one not in LOSE]
    # Gloo does not record sends: without stacks, a rank that waits in one seems to be late.
    forms = [one for one in FORMS if stuck.layout.pipeline == 1 or one != "gloo"]
    if several == 1:
        chosen = [draw.choice(changes)]
    else:
        chosen = draw.sample([one for one in changes if one in TOGETHER], several)
    found = Found(draw.choice(forms), tuple(chosen))
    if draw.random() < 0.5:
        found.world = stuck.layout.world
    others = sorted(set(stuck.dumps) - set(stuck.culprits))
    dumps = {rank: deepcopy(dump) for rank, dump in stuck.dumps.items()}
    if "missing" in chosen:
        del dumps[others.pop(draw.randrange(len(others)))]
    for dump in dumps.values():
        for change in chosen:
            _changed(dump, change, draw.randrange(-(10**12), 10**12))
    named = draw.choice(NAMES)
    cut = {
        "cut": draw.choice(others),
        "cut culprit": stuck.culprit,
    }
    damaged = {rank for change, rank in cut.items() if change in chosen}
    for rank, dump in dumps.items():
        data = written(dump, found.form)
        if rank in damaged:
            data = data[: int(len(data) * draw.uniform(0.1, 0.9))]
        found.files[named.format(rank)] = data
    return found


def _changed(dump: Json, change: Change, clock: int) -> None:
    if change == "wrapped":
        dump["entries"] = dump["entries"][-4:]
    for one in dump["entries"]:
        if change == "clocks":
            one["time_created_ns"] += clock
        elif change == "unnamed":
            # Numbers count the groups of the process.
            one["pg_id"] = list(dump["pg_config"]).index(one["process_group"][0])
            one["process_group"] = ("", "")
        elif change == "hashed":
            name, desc = one["process_group"]
            one["process_group"] = (_hash(name), desc)
    if change == "hashed":
        # Statuses go by number, groups by name.
        dump["pg_config"] = {
            _hash(name): {**told, "name": _hash(name)} for name, told in dump["pg_config"].items()
        }
    elif change == "unnamed":
        order = list(dump["pg_config"])
        dump["pg_status"] = {str(order.index(n)): far for n, far in dump["pg_status"].items()}
        dump["pg_config"] = {"": {"name": "", "desc": "", "ranks": "[]"}}


def _hash(name: str) -> str:
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:16]


def written(dump: Json, form: Form) -> bytes:
    """Return the bytes of *dump* in a form."""
    if form == "torch-2.4":
        # It has no status of groups yet, and no time-out of a call.
        old = {name: value for name, value in dump.items() if name != "pg_status"}
        kept = [{k: v for k, v in one.items() if k != "timeout_ms"} for one in dump["entries"]]
        return pickle.dumps({**old, "version": "2.3", "entries": kept}, 2)
    if form == "torch-2.5":
        return pickle.dumps({**dump, "version": "2.4"}, 2)
    if form == "text":
        return repr(dump).encode()
    if form == "gloo":
        return json.dumps(_as_gloo(dump)).encode()
    strings = {
        number: {name: str(value) for name, value in far.items()}
        for number, far in dump["pg_status"].items()
    }
    whole = {**dump, "pg_status": strings, "nccl_comm_state": {}, "comm_lib_version": "2.27.3"}
    if form == "json-2.13":
        whole["entries"] = [
            {**one, "thread_id": "140", "thread_name": "pt"} for one in dump["entries"]
        ]
    return json.dumps(whole).encode()


def _as_gloo(dump: Json) -> Json:
    """Return what gloo's backend records: no exchanges, no state but that it has ended."""
    entries = [
        {
            **one,
            "profiling_name": one["profiling_name"].replace("nccl:", "gloo:"),
            "state": "scheduled",
            "time_discovered_started_ns": 0,
            "time_discovered_completed_ns": 0,
        }
        for one in dump["entries"]
        if not one["is_p2p"]
    ]
    status = {
        number: {**{k: str(v) for k, v in far.items()}, "last_started_collective": "-1"}
        for number, far in dump["pg_status"].items()
    }
    config = {"": {"name": "", "desc": "", "ranks": "[]"}}
    return {**dump, "entries": entries, "pg_status": status, "pg_config": config}
