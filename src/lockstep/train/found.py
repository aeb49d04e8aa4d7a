"""What a running program consists of: modules, optimizers, scalers, and tensors beside them."""

from __future__ import annotations

import gc
import json
import struct
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from lockstep.train.copying import address
from lockstep.train.tape import is_of_program, padded, unpadded

_LARGEST = 1 << 20
"""Bytes of a tensor beside the modules that is kept."""
_ALL = 4 << 20
_MEMBERS = 64
_OPTIMIZED = 1
"""Of a code's flags: its locals lie in no dictionary of their own."""
_LENGTH = struct.Struct("<q")


def parts() -> dict[str, Any]:
    """Return the outermost modules, the optimizers and the scalers of this process, by name.

    Names follow the order in which they were made, so that the same program gives the same names.
    """
    kinds = (torch.nn.Module, torch.optim.Optimizer, torch.amp.GradScaler)
    # By their types: what objects say of their class may be code of theirs.
    every = [
        one for age in (2, 1, 0) for one in gc.get_objects(age) if issubclass(type(one), kinds)
    ]
    modules = [one for one in _of(every, kinds[0]) if _has_state(one)]
    inner = {id(child) for one in modules for child in one.modules() if child is not one}
    outermost = [one for one in modules if id(one) not in inner]
    optimizers = _of(every, kinds[1])
    # Of a wrapper and the optimizer inside, that one steps.
    known = {id(one) for one in optimizers}
    optimizers = [one for one in optimizers if not known & {id(v) for v in vars(one).values()}]
    scalers = [one for one in _of(every, kinds[2]) if one.is_enabled()]
    found: dict[str, Any] = {}
    for kind, some in (("module", outermost), ("optimizer", optimizers), ("scaler", scalers)):
        found |= {f"{kind}{n}-{type(one).__name__}": one for n, one in enumerate(some)}
    return found


def _of(objects: list[Any], kind: type) -> list[Any]:
    return [one for one in objects if issubclass(type(one), kind)]


def _has_state(module: torch.nn.Module) -> bool:
    return next(module.parameters(), None) is not None or next(module.buffers(), None) is not None


class Attributes:
    """The numbers that modules keep as plain attributes: a count of calls, a mode of a wrapper."""

    def __init__(self, found: dict[str, Any]) -> None:
        """Take those of the modules among *found*."""
        self._modules = [
            module
            for part in found.values()
            if isinstance(part, torch.nn.Module)
            for module in part.modules()
        ]

    def state_dict(self) -> list[dict[str, Any]]:
        """Return them, in the order of the modules."""
        return [
            {k: v for k, v in vars(one).items() if type(v) in (bool, int, float)}
            for one in self._modules
        ]

    def load_state_dict(self, state: list[dict[str, Any]]) -> None:
        """Set them."""
        for one, kept in zip(self._modules, state):
            for name, value in kept.items():
                if vars(one).get(name) != value:
                    setattr(one, name, value)


class Loose:
    """The tensors in variables of the program that belong to no module and no optimizer."""

    def __init__(self, frame: Any, taken: set[int]) -> None:
        """Look from *frame* outwards; what lies at an address in *taken* is kept elsewhere."""
        self._taken = taken
        self.frame = frame

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        frame, depth, left = self.frame, 0, _ALL
        while frame is not None:
            if is_of_program(frame):
                there = frame.f_locals
                for name, value in list(there.items()):
                    for path, one in _within(f"{depth}.{frame.f_code.co_name}.{name}", value):
                        if one.nbytes <= min(_LARGEST, left) and address(one) not in self._taken:
                            left -= one.nbytes
                            yield path, one
                if frame.f_code.co_flags & _OPTIMIZED and type(there) is dict:
                    # A copy, which would keep the step's tensors alive beyond the step.
                    there.clear()
                depth += 1
            frame = frame.f_back

    def state_dict(self) -> dict[str, Any]:
        """Return their values in one tensor whose size changes rarely."""
        table, data = [], bytearray()
        for path, one in self._tensors():
            held = one.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            table.append([path, str(one.dtype), list(one.shape), one.nbytes])
            data += held.numpy().tobytes()
        text = json.dumps(table).encode()
        return {"kept": padded(_LENGTH.pack(len(text)) + text + data)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Give the tensors in variables of the same names the values that are kept."""
        raw = unpadded(state["kept"])
        (length,) = _LENGTH.unpack_from(raw)
        at = _LENGTH.size + length
        kept = {}
        for path, dtype, shape, size in json.loads(raw[_LENGTH.size : at]):
            kept[path, dtype, tuple(shape)] = raw[at : at + size]
            at += size
        with torch.no_grad():
            for path, one in self._tensors():
                data = kept.get((path, str(one.dtype), tuple(one.shape)))
                if data:
                    flat = torch.frombuffer(bytearray(data), dtype=one.dtype)
                    one.detach().copy_(flat.reshape(one.shape))


def _within(path: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of *value*: it, what a list or dictionary holds, and an object's own."""
    if type(value) is Tensor:
        if value.layout is torch.strided and value.numel():
            yield path, value
        return
    if isinstance(value, (list, tuple)):
        inner: Any = enumerate(value)
    elif isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, (torch.nn.Module, torch.optim.Optimizer, type)):
        return
    else:
        inner = getattr(value, "__dict__", {}).items()
    for count, (name, one) in enumerate(list(inner)[:_MEMBERS]):
        if type(one) is Tensor and one.layout is torch.strided and one.numel():
            yield f"{path}.{name if isinstance(name, str) else count}", one
