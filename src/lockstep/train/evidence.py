"""What a launcher tells of ranks that do not go on: what each waits in, and whether it answers.

A rank's worker server tells its collectives while the interpreter's lock is held, and its stacks
only while it is not. A process that is stopped answers nothing, and the kernel says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lockstep.health.core.traces import NoDump, facts
from lockstep.train.state import Json

Ask = Callable[[int, str, float], bytes]

EACH = 2.0
"""Seconds that a rank has for an answer."""
LONGEST = 4096
_STOPPED = ("T", "t")
_WAITS = "D"
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x[0-9a-f]+.*:$")
_FRAME = re.compile(r'^ +File "([^"]*)", line (\d+) in (.*)$')
_LIBRARY = re.compile(r"/(?:site-packages|dist-packages|lib/python3)[^/]*/")
_COLLECTIVES = re.compile(r"/torch/distributed/(?:distributed_c10d|_functional_collectives)\.py$")
_LOADER = "dataloader.py"


def memory_kills(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how often the kernel killed a process of this cgroup for want of memory."""
    with contextlib.suppress(OSError, ValueError):
        for line in (proc / "self/cgroup").read_text().splitlines():
            _, kinds, place = line.split(":", 2)
            if kinds and "memory" not in kinds.split(","):
                continue
            root = groups / "memory" if kinds else groups
            name = "memory.oom_control" if kinds else "memory.events"
            # In a container the cgroup's own folder may be mounted as the root.
            for folder in (root / place.lstrip("/"), root):
                if (folder / name).is_file():
                    told = dict(row.split() for row in (folder / name).read_text().splitlines())
                    return int(told.get("oom_kill", 0))
    return 0


def state(pid: int, proc: Path = Path("/proc")) -> str:
    """Return the state of a process as the kernel tells it; empty where there is none."""
    try:
        text = (proc / str(pid) / "stat").read_text()
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[0]


def of_rank(ask: Ask, local: int, rank: int, pid: int, proc: Path = Path("/proc")) -> Json:
    """Return what is known of one rank, as a ``RankSeen`` of at most ``LONGEST`` bytes."""
    seen: Json = {"rank": rank}
    if state(pid, proc) in _STOPPED:
        return {**seen, "answers": "stopped"}
    trace, stacks = _answer(ask, local, "fr_trace_json"), _answer(ask, local, "dump_traceback")
    if trace is None:
        odd = state(pid, proc) in (*_STOPPED, _WAITS)
        return {**seen, "answers": "stopped" if odd else "none"}
    with contextlib.suppress(NoDump, ValueError, RecursionError):
        seen.update(facts(json.loads(trace)))
    if stacks is None:
        return _short({**seen, "answers": "trace"})
    return _short({**seen, **stack(stacks.decode(errors="replace")), "answers": "all"})


def _answer(ask: Ask, local: int, handler: str) -> bytes | None:
    try:
        return ask(local, handler, EACH)
    except (OSError, http.client.HTTPException):
        return None


def stack(text: str) -> Json:
    """Return where the main thread is, and a hash that is the same for ranks at the same place."""
    frames: list[tuple[str, str, str]] = []
    for line in text.splitlines():
        if _THREAD.match(line):
            # The main thread comes last.
            frames = []
        elif found := _FRAME.match(line):
            frames.append((found[1], found[2], found[3]))
    if not frames:
        return {}
    own = next((one for one in frames if not _LIBRARY.search(one[0])), frames[0])
    loader = next((one for one in frames if one[0].endswith(_LOADER)), None)
    chosen = [one for one in (loader, own) if one is not None]
    where = " from ".join(f"{Path(file).name}:{line} in {name}" for file, line, name in chosen)
    words = "\n".join(f"{file} {name}" for file, _, name in frames)
    told = {"at": where[:200], "frames": hashlib.sha256(words.encode()).hexdigest()[:12]}
    # The outermost frame of the library is what the program called.
    called = [name for file, _, name in frames if _COLLECTIVES.search(file) and name != "wrapper"]
    return {**told, "inside": called[-1][:60]} if called else told


def _short(seen: Json) -> Json:
    """Leave out groups that have nothing to tell, and then more, until it is short enough."""
    waits = {one["group"] for one in seen.get("waiting", ())}
    groups = sorted(seen.get("groups", ()), key=lambda one: one["group"] not in waits)
    waiting = list(seen.get("waiting", ()))
    while len(json.dumps({**seen, "groups": groups, "waiting": waiting})) > LONGEST:
        named = [one for one in groups if one.get("ranks")]
        if named:
            named[-1]["ranks"] = ""
        elif groups:
            groups.pop()
        elif waiting:
            waiting.pop()
        else:
            break
    return {**seen, "groups": groups, "waiting": waiting}


def of_ranks(ask: Ask, first: int, pids: Mapping[int, int]) -> list[Json]:
    """Return what is known of each local rank, asked all at once; *pids* are by local rank."""
    if not pids:
        return []
    with ThreadPoolExecutor(max_workers=min(16, len(pids))) as pool:
        told = [pool.submit(of_rank, ask, n, first + n, pid) for n, pid in pids.items()]
        return [one.result() for one in told]


def collect(ask: Ask, first: int, pids: Mapping[int, int]) -> Iterator[tuple[str, bytes]]:
    """Yield what the local ranks answer, raw and as it is reported, by names of files."""
    for seen in of_ranks(ask, first, pids):
        yield f"ranks/rank-{seen['rank']}.json", json.dumps(seen).encode()
    for local in pids:
        for handler, kind in (("fr_trace_json", "traces/trace"), ("dump_traceback", "stacks/rank")):
            data = _answer(ask, local, handler)
            if data is not None:
                yield f"{kind}-{first + local}", data
