"""A session's state as files, and back: runs inside the user's kernel.

It imports nothing of Lockstep's, for the kernel may run in an environment that lacks it. What the
user wrote is pickled by cloudpickle, one pickle for all so that shared objects stay shared; arrays
and tensors go beside it as raw bytes. ``state.pickle`` and ``arrays.raw`` are described in
``meta.json``, with their SHA-256 sums. Loading checks the signature over ``meta.json`` first.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import pickle
import random
import subprocess
import sys
import tempfile
import threading
import types
from pathlib import Path
from typing import Any

MODULE = "_lockstep_session_state"
"""Under this name the module is found again when a state is loaded."""
STATE, ARRAYS, META = "state.pickle", "arrays.raw", "meta.json"
FORMAT = 1
_FILES = (io.FileIO, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper)
_LOCK, _RLOCK = type(threading.Lock()), type(threading.RLock())
_BASELINE: dict[str, Any] = {}
_REHEARSAL: list[Any] = []
REHEARSAL_SECONDS = 120


class Unkeepable(Exception):
    """Something of the session cannot be kept."""

    def __init__(self, obstacles: list[dict[str, str]]) -> None:
        super().__init__(", ".join(one["name"] for one in obstacles))
        self.obstacles = obstacles


class Damaged(Exception):
    """A state's files are not those that were written."""


def begin() -> None:
    """Remember what a fresh kernel has, to tell later what the user has added."""
    _BASELINE["threads"] = {thread.ident for thread in threading.enumerate()}
    _BASELINE["environ"] = dict(os.environ)
    _BASELINE["children"] = _children()
    _BASELINE["names"] = set(_shell().user_ns)


def obstacles() -> list[dict[str, str]]:
    """Return what cannot be kept, each with ``name``, ``type`` and ``why``."""
    found = _running()
    kept = _variables()
    try:
        _written(kept)
    except Exception:  # any type of a user's may fail in any way
        found += _suspects(kept)
    return found


def save(directory: str, drop: list[str]) -> dict[str, Any]:
    """Write the session's state into *directory*, without the variables *drop*; return the meta.

    What was written is loaded by a fresh interpreter before it counts.

    Raises:
        Unkeepable: when something else cannot be kept; nothing of use was written then.
        OSError: when the volume is full or gone.
    """
    place = Path(directory)
    there = [one for one in obstacles() if one["name"] not in drop]
    if there:
        raise Unkeepable(there)
    kept = {name: value for name, value in _variables().items() if name not in drop}
    size = _keep(place, kept, drop)
    if why := _rehearsed(place):
        raise Unkeepable(_not_loadable(kept) or [{"name": "(all)", "type": "", "why": why}])
    return {"bytes": size, "variables": sorted(kept)}


def _keep(place: Path, kept: dict[str, Any], dropped: list[str]) -> int:
    """Write variables with the meta that describes them; return the bytes of their state."""
    lengths, summed = _write(place, kept)
    meta = {
        "format": FORMAT,
        "python": list(sys.version_info[:2]),
        "variables": sorted(kept),
        "dropped": sorted(dropped),
        "surroundings": _surroundings(),
        "arrays": {"lengths": lengths, "sha256": summed},
        "state": {"bytes": (place / STATE).stat().st_size, "sha256": _sum(place / STATE)},
    }
    with (place / META).open("w") as out:
        json.dump(meta, out)
        _settle(out)
    return sum(lengths) + (place / STATE).stat().st_size


def _write(place: Path, kept: dict[str, Any]) -> tuple[list[int], str]:
    lengths: list[int] = []
    summed = hashlib.sha256()
    with (place / ARRAYS).open("wb") as raw, (place / STATE).open("wb") as out:

        def beside(buffer: pickle.PickleBuffer) -> bool:
            view = buffer.raw()
            raw.write(view)
            summed.update(view)
            lengths.append(view.nbytes)
            return False

        _pickler(out, beside).dump({"variables": kept, "random": _random_states()})
        _settle(out)
        _settle(raw)
    return lengths, summed.hexdigest()


def load(directory: str) -> dict[str, Any]:
    """Bring the state in *directory* into this session; its meta was checked by the caller.

    Raises:
        Damaged: when the arrays or the pickle are not what the meta says; nothing was loaded.
    """
    place = Path(directory)
    meta = json.loads((place / META).read_text())
    if meta["python"] != list(sys.version_info[:2]):
        there, here = (".".join(map(str, one)) for one in (meta["python"], sys.version_info[:2]))
        raise Damaged(f"it was kept by Python {there}, and this kernel runs {here}")
    if _sum(place / STATE) != meta["state"]["sha256"]:
        raise Damaged(f"{STATE} is not what was written")
    buffers = _read_arrays(place / ARRAYS, meta["arrays"])
    around = meta["surroundings"]
    sys.path[:] = [*around["path"], *(one for one in sys.path if one not in around["path"])]
    with (place / STATE).open("rb") as source:
        state = _Unpickler(source, buffers=buffers).load()
    _set_surroundings(around)
    _set_random_states(state["random"])
    _shell().user_ns.update(state["variables"])
    return {"variables": meta["variables"], "dropped": meta["dropped"]}


def call(asked: str) -> str:
    """Do what *asked*, a function's name and arguments in JSON, says; answer in JSON."""
    name, arguments = json.loads(asked)
    try:
        done = _CALLS[name](*arguments)
    except Unkeepable as error:
        return json.dumps({"obstacles": error.obstacles})
    except Exception as error:
        return json.dumps({"error": f"{type(error).__name__}: {error}"})
    return json.dumps({"done": done})


_CALLS: dict[str, Any] = {"begin": begin, "obstacles": obstacles, "save": save, "load": load}


def _shell() -> Any:
    if _REHEARSAL:
        return _REHEARSAL[0]
    from IPython import get_ipython  # the kernel has it

    return get_ipython()


def _variables() -> dict[str, Any]:
    shell = _shell()
    hidden = {*shell.user_ns_hidden, *_BASELINE.get("names", ())}
    return {
        name: value
        for name, value in sorted(shell.user_ns.items())
        if name not in hidden and not _of_history(name)
    }


def _of_history(name: str) -> bool:
    return name in ("_", "__", "___", "_i", "_ii", "_iii", "In", "Out") or (
        name[:1] == "_" and name.lstrip("_i").isdigit()
    )


def _obstacle(name: str, value: Any, error: Exception) -> dict[str, str]:
    return {"name": name, "type": type(value).__qualname__, "why": str(error).splitlines()[0][:300]}


def _running() -> list[dict[str, str]]:
    """Return the threads and processes that the user has started."""
    known = _BASELINE.get("threads", set())
    found = [
        {"name": f"thread {one.name}", "type": "Thread", "why": "a thread that runs"}
        for one in threading.enumerate()
        if one.ident not in known and one.is_alive() and not _of_the_kernel(one)
    ]
    found += [
        {"name": f"process {pid}", "type": "Process", "why": "a process that the session started"}
        for pid in sorted(_children() - _BASELINE.get("children", set()))
    ]
    return found


def _of_the_kernel(thread: threading.Thread) -> bool:
    module = type(thread).__module__
    return module.startswith(("ipykernel", "IPython", "zmq", "tqdm"))


def _children() -> set[int]:
    found = set()
    for one in Path("/proc/self/task").glob("*/children"):
        try:
            found |= {int(pid) for pid in one.read_text().split()}
        except OSError:
            continue
    return found


def _surroundings() -> dict[str, Any]:
    """Return what a session has beside its variables, as JSON can say it."""
    shell = _shell()
    before = _BASELINE.get("environ", {})
    return {
        "cwd": str(Path.cwd()),
        "path": list(sys.path),
        "environ": {name: text for name, text in os.environ.items() if before.get(name) != text},
        "count": shell.execution_count,
        "inputs": list(shell.user_ns.get("In", [])),
    }


def _set_surroundings(around: dict[str, Any]) -> None:
    shell = _shell()
    if Path(around["cwd"]).is_dir():
        os.chdir(around["cwd"])
    os.environ.update(around["environ"])
    shell.execution_count = around["count"]
    if "In" in shell.user_ns:
        shell.user_ns["In"][:] = around["inputs"]


def _random_states() -> dict[str, Any]:
    found: dict[str, Any] = {"random": random.getstate()}
    if "numpy" in sys.modules:
        found["numpy"] = sys.modules["numpy"].random.get_state()
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        found["torch"] = torch.get_rng_state().numpy().tobytes()
        if torch.cuda.is_initialized():
            found["cuda"] = [one.numpy().tobytes() for one in torch.cuda.get_rng_state_all()]
    return found


def _set_random_states(states: dict[str, Any]) -> None:
    random.setstate(states["random"])
    if "numpy" in states:
        import numpy

        numpy.random.set_state(states["numpy"])
    if "torch" in states:
        import torch

        torch.set_rng_state(torch.frombuffer(bytearray(states["torch"]), dtype=torch.uint8))
        cards = states.get("cuda", [])
        if cards and torch.cuda.device_count() == len(cards):
            found = [torch.frombuffer(bytearray(one), dtype=torch.uint8) for one in cards]
            torch.cuda.set_rng_state_all(found)


def _settle(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_arrays(path: Path, told: dict[str, Any]) -> list[Any]:
    summed = hashlib.sha256()
    buffers = []
    with path.open("rb", buffering=0) as file:
        for length in told["lengths"]:
            buffer = _room(length)
            view, got = memoryview(buffer).cast("B"), 0
            while got < length:
                read = file.readinto(view[got : got + (64 << 20)])
                if not read:
                    raise Damaged(f"{ARRAYS} is shorter than what was written")
                summed.update(view[got : got + read])
                got += read
            buffers.append(buffer)
        if file.read(1):
            raise Damaged(f"{ARRAYS} is longer than what was written")
    if summed.hexdigest() != told["sha256"]:
        raise Damaged(f"{ARRAYS} is not what was written")
    return buffers


def _room(length: int) -> Any:
    """Return writable memory; without zeroing it first where numpy is there."""
    if "numpy" in sys.modules or length > 1 << 20:
        try:
            import numpy
        except ImportError:
            return bytearray(length)
        return numpy.empty(length, numpy.uint8) if length else bytearray()
    return bytearray(length)


def _written(variables: dict[str, Any]) -> bytes:
    """Return *variables* as a pickle without their arrays; raise what cannot be pickled."""
    out = io.BytesIO()
    _pickler(out, lambda _: False).dump(variables)
    return out.getvalue()


def _suspects(variables: dict[str, Any]) -> list[dict[str, str]]:
    """Return which of *variables* cannot be pickled."""
    found = []
    for name, value in variables.items():
        try:
            _written({name: value})
        except Exception as error:  # any type of a user's may fail in any way
            found.append(_obstacle(name, value, error))
    return found or [{"name": "(all)", "type": "", "why": "each could be kept, but not together"}]


def _not_loadable(variables: dict[str, Any]) -> list[dict[str, str]]:
    """Return which of *variables* a fresh interpreter cannot load."""
    found = []
    for name, value in variables.items():
        with tempfile.TemporaryDirectory() as place:
            _keep(Path(place), {name: value}, [])
            if why := _rehearsed(Path(place)):
                found.append(_obstacle(name, value, RuntimeError(why)))
    return found


def _rehearsed(place: Path) -> str:
    """Let a fresh interpreter load what is in *place*; return what it says went wrong."""
    command = (sys.executable, "-P", __file__, str(place))
    environ = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    try:
        done = subprocess.run(  # noqa: S603  this very interpreter and file
            command, env=environ, capture_output=True, timeout=REHEARSAL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"loading it took longer than {REHEARSAL_SECONDS} s"
    last = done.stderr.decode(errors="replace").strip().splitlines() or ["no word"]
    return "" if done.returncode == 0 else last[-1][:300]


class _Bare:
    """Stands for the shell where a state is only loaded to see whether that works."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = sys.modules["__main__"].__dict__
        self.execution_count = 0


def rehearse(directory: str) -> None:
    """Load what is in *directory* in this fresh interpreter; raise what keeps it from that."""
    # As in a kernel: what is loaded finds this module by its name, and __main__ is the user's.
    own = types.ModuleType(MODULE)
    own.__dict__.update(globals())
    sys.modules[MODULE] = own
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    _REHEARSAL.append(_Bare())
    load(directory)


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> Any:
        shell = _shell()
        known = {
            "shell": shell,
            "namespace": shell.user_ns,
            "main": sys.modules["__main__"],
            "stdout": sys.stdout,
            "stderr": sys.stderr,
        }
        return known[pid]


def _pickler(out: Any, beside: Any) -> Any:
    made: Any = _pickler_class()
    return made(out, protocol=5, buffer_callback=beside)


def _pickler_class() -> Any:
    """Return the pickler, made on first use: cloudpickle is the user's environment's."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.known, self.space = _of_the_session(), _shell().user_ns
            self.globals_ref[id(self.space)] = self.space
            self.storages: dict[tuple[str, int, int], Any] = {}

        def persistent_id(self, obj: Any) -> Any:
            return self.known.get(id(obj))

        def reducer_override(self, obj: Any) -> Any:
            kind = type(obj)
            if isinstance(obj, _FILES):
                raise pickle.PicklingError("an open file")
            if kind in (_LOCK, _RLOCK):
                return _unlocked(obj, kind)
            module, name = kind.__module__, kind.__name__
            if module == "numpy" and name == "ndarray" and (seen := _view_of(obj)):
                return seen
            if module.startswith("torch") and name in ("TypedStorage", "UntypedStorage"):
                return _storage(self, obj)
            return super().reducer_override(obj)

        def _dynamic_function_reduce(self, func: Any) -> Any:
            """Reduce a function by value; one of the session's has the session's globals again."""
            made = super()._dynamic_function_reduce(func)
            if func.__globals__ is self.space:
                made[2][1]["__globals__"] = {}
            return made

    return Pickler


def _of_the_session() -> dict[int, str]:
    """Return the objects that each session has of its own, by identity: they are not pickled."""
    shell = _shell()
    return {
        id(shell): "shell",
        id(shell.user_ns): "namespace",
        id(sys.modules["__main__"]): "main",
        id(sys.stdout): "stdout",
        id(sys.stderr): "stderr",
    }


def _unlocked(obj: Any, kind: type) -> Any:
    if not obj.acquire(blocking=False):
        raise pickle.PicklingError("a lock that is held")
    obj.release()
    return (threading.Lock if kind is _LOCK else threading.RLock, ())


def _view_of(array: Any) -> Any:
    """Reduce an array that shows part of another, so that both go on sharing memory."""
    base = array.base
    if base is None or type(base) is not type(array) or array.dtype.hasobject:
        return None
    while type(base.base) is type(array):
        base = base.base
    if base.base is not None or not base.flags.forc:
        return None
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return (_view, (base, array.dtype, array.shape, offset, array.strides))


def _view(base: Any, dtype: Any, shape: Any, offset: int, strides: Any) -> Any:
    flat = base.reshape(-1, order="A").view("uint8")
    return type(base)(shape, dtype, buffer=flat, offset=offset, strides=strides)


def _storage(pickler: Any, obj: Any) -> Any:
    """Reduce a tensor's memory to raw bytes; tensors that share it go on sharing it."""
    torch: Any = importlib.import_module("torch")
    if isinstance(obj, torch.UntypedStorage):
        host = obj.cpu()
        flat = torch.empty(0, dtype=torch.uint8).set_(host).numpy()
        return (_filled, (pickle.PickleBuffer(flat), str(obj.device)))
    untyped = obj._untyped_storage
    key = (str(untyped.device), untyped.data_ptr(), untyped.nbytes())
    if untyped.nbytes():
        untyped = pickler.storages.setdefault(key, untyped)
    return (_typed, (untyped, obj.dtype))


def _filled(data: Any, device: str) -> Any:
    torch: Any = importlib.import_module("torch")
    if not memoryview(data).nbytes:
        return torch.UntypedStorage(0)
    storage = torch.frombuffer(data, dtype=torch.uint8).untyped_storage()
    if device == "cpu":
        return storage
    if device.startswith("cuda") and torch.cuda.is_available():
        index = int(device.partition(":")[2] or 0)
        return storage.cuda(index if index < torch.cuda.device_count() else 0)
    return storage


def _typed(untyped: Any, dtype: Any) -> Any:
    torch: Any = importlib.import_module("torch")
    return torch.storage.TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


if __name__ == "__main__":
    rehearse(sys.argv[1])
