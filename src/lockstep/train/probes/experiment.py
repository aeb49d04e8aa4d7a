"""In a clone of a job: one thing altered, a few dozen steps, nothing written where others look.

``LOCKSTEP_EXPERIMENT`` says what as JSON: ``change`` with its ``value``, and ``steps``. Without
that variable every function here does what would be done anyway.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

_PLAN: Any = json.loads(os.environ.get("LOCKSTEP_EXPERIMENT") or "{}")
CHANGE = str(_PLAN.get("change", ""))
VALUE = _PLAN.get("value")
STEPS = int(_PLAN.get("steps", 0))
INSIDE = bool(_PLAN)
"""Whether this process is of a clone."""
_INDICES = 2
"""Batches whose samples are read again and again with ``cached_bytes``."""
_POSITIONS = ("dataset", "batch_size")


def loader_options(arguments: Any, options: Any) -> Any:
    """Return the options of a data loader, those altered that are to be."""
    if not INSIDE or CHANGE not in ("workers", "persistent", "pinned", "batch"):
        return options
    altered = dict(options)
    if CHANGE == "workers":
        altered["num_workers"] = int(VALUE)
        altered.setdefault("persistent_workers", True)
        altered["persistent_workers"] = True
    elif CHANGE == "pinned":
        altered["pin_memory"] = True
    elif CHANGE == "persistent" and int(altered.get("num_workers", 0)):
        altered["persistent_workers"] = True
        altered["prefetch_factor"] = max(4, int(altered.get("prefetch_factor") or 2))
    elif CHANGE == "batch" and len(arguments) < len(_POSITIONS):
        size = altered.get("batch_size", 1)
        altered["batch_size"] = int(size * VALUE) if size else size
    return altered


_first: dict[str, Any] = {}


def batch(iterator: Any, following: Any) -> Any:
    """Return the next batch; with ``cached_batch`` the first one again, as often as there are."""
    if CHANGE != "cached_batch":
        return following(iterator)
    if "batch" not in _first:
        _first["batch"] = following(iterator)
        _first["left"] = len(iterator._index_sampler) if hasattr(iterator, "_index_sampler") else 1
        _first["of"] = _first["left"]
    elif _first["left"] <= 0:
        _first["left"] = _first["of"]
        raise StopIteration
    _first["left"] -= 1
    return _first["batch"]


_seen: list[Any] = []
_turn = [0]


def fetched(fetch: Any, fetcher: Any, index: Any) -> Any:
    """Return what *fetch* gets; with ``cached_bytes`` of samples whose bytes are in memory."""
    if CHANGE != "cached_bytes" or index is None:
        return fetch(fetcher, index)
    if len(_seen) < _INDICES:
        _seen.append(index)
    else:
        index = _seen[_turn[0] % _INDICES]
        _turn[0] += 1
    with _Cached():
        return fetch(fetcher, index)


class _Cached:
    """Reads of files and URLs answered from memory where they were read before."""

    kept: dict[Any, bytes] = {}

    def __enter__(self) -> None:
        import builtins
        import io
        import urllib.request

        self._open, self._urlopen = builtins.open, urllib.request.urlopen

        def opened(file: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
            if mode not in ("rb", "r") or not isinstance(file, (str, os.PathLike)):
                return self._open(file, mode, *more, **options)
            key = os.fspath(file)
            if key not in self.kept:
                with self._open(key, "rb") as source:
                    self.kept[key] = source.read()
            data = io.BytesIO(self.kept[key])
            return data if mode == "rb" else io.TextIOWrapper(data, **options)

        def got(url: Any, *more: Any, **options: Any) -> Any:
            key = url if isinstance(url, str) else (url.full_url, tuple(url.header_items()))
            if key not in self.kept:
                with self._urlopen(url, *more, **options) as source:
                    self.kept[key] = source.read()
            return io.BytesIO(self.kept[key])

        builtins.open, urllib.request.urlopen = opened, got

    def __exit__(self, *_: Any) -> None:
        import builtins
        import urllib.request

        builtins.open, urllib.request.urlopen = self._open, self._urlopen


def alter(module: Any) -> None:
    """Alter torch in a clone: what it saves goes elsewhere, or nowhere."""
    if not INSIDE:
        return
    save = module.save

    def saved(obj: Any, f: Any, *more: Any, **options: Any) -> Any:
        if CHANGE == "no_checkpoint":
            return None
        if not isinstance(f, (str, os.PathLike)):
            return save(obj, f, *more, **options)
        folder = os.path.dirname(os.fspath(f)) or "."  # noqa: PTH120
        usable = folder if os.access(folder, os.W_OK) else None
        with tempfile.NamedTemporaryFile(dir=usable, prefix="lockstep-clone-") as draft:
            return save(obj, draft.name, *more, **options)

    module.save = saved


def quiet() -> None:
    """In a clone keep trackers off; with ``no_logging`` also all that is logged or printed."""
    if not INSIDE:
        return
    os.environ.update(WANDB_MODE="disabled", MLFLOW_TRACKING_URI="file:/dev/null")
    if CHANGE != "no_logging":
        return
    import builtins
    import logging

    logging.disable(logging.CRITICAL)
    builtins.print = lambda *_, **__: None
    _mute_files()
    _mute_http()


def _mute_files() -> None:
    """Let writes of text go nowhere, but for the files of the probes."""
    import builtins

    real, here = builtins.open, os.environ["LOCKSTEP_PROBES"]

    def opened(file: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
        text = isinstance(file, str) and "b" not in mode and mode[:1] in "wax"
        if text and not file.startswith((here, "/proc", "/dev")):
            return real(os.devnull, mode, *more, **options)
        return real(file, mode, *more, **options)

    builtins.open = opened
    os.fsync = _nothing


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _mute_http() -> None:
    """Answer what would be sent to trackers."""
    import io
    import urllib.request

    real = urllib.request.urlopen

    def sent(url: Any, data: Any = None, *more: Any, **options: Any) -> Any:
        if data is not None or getattr(url, "data", None) is not None:
            return io.BytesIO(b"{}")
        return real(url, data, *more, **options)

    urllib.request.urlopen = sent


def without_metrics(module: Any) -> None:
    """With ``no_metrics`` let collectives that the user calls do nothing; DDP's own stay."""
    if CHANGE != "no_metrics":
        return
    for name in ("all_reduce", "all_gather", "all_gather_object", "barrier", "reduce", "gather"):
        setattr(module, name, lambda *_, **__: None)


def finish(steps: int) -> None:
    """End the clone once it has made its steps."""
    if INSIDE and steps >= STEPS:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
