"""The door between nvidia-ml-py and NVML: arguments are checked before the library sees them.

A wrong argument crashes the process in C, where Python catches nothing. Here it becomes an error of
that one call: the log names the call, and the caller goes on without what it would have told. Calls
that crashed all the same are not made again (``crashes``).
"""

from __future__ import annotations

import ctypes
import logging
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from lockstep.devices.core.nvml_types import TYPES

log = logging.getLogger(__name__)

_BYREF: Final = type(ctypes.byref(ctypes.c_int()))
_SIMPLE: Final[Any] = ctypes.c_int.__mro__[1]
_POINTERS: Final = (
    _BYREF,
    bytes,
    ctypes.c_char_p,
    ctypes.c_void_p,
    ctypes.Array,
    ctypes.POINTER(ctypes.c_int).__mro__[1],
)
_NUMBERS: Final = {"I": ctypes.c_uint, "i": ctypes.c_int, "L": ctypes.c_ulonglong}

_crashed: set[str] = set()


def refuse(calls: Iterable[str]) -> None:
    """Refuse these calls from now on, whichever version of them nvidia-ml-py takes."""
    _crashed.update(_plain(one) for one in calls)


def _plain(name: str) -> str:
    return re.sub(r"_v\d+$", "", name)


def checked(lib: Any) -> None:
    """Let the module ``pynvml`` call NVML only with arguments of the types in NVML's header."""
    find = lib._nvmlGetFunctionPointer
    if not hasattr(find, "unchecked"):
        lib._nvmlGetFunctionPointer = _door(lib, find)


def _door(lib: Any, find: Callable[[str], Any]) -> Callable[[str], Callable[..., int]]:
    """Return what finds a function of NVML and checks the arguments of its calls."""
    known: dict[str, Callable[..., int]] = {}

    def found(name: str) -> Callable[..., int]:
        if name not in known:
            known[name] = _checking(lib, name, find(name))
        return known[name]

    found.unchecked = find  # type: ignore[attr-defined]
    return found


def _checking(lib: Any, name: str, function: Any) -> Callable[..., int]:
    refused: set[str] = set()
    if _plain(name) in _crashed:
        return _Function(lambda *_: int(lib.NVML_ERROR_NOT_SUPPORTED), function)

    def call(*arguments: Any) -> int:
        wrong = mismatch(name, arguments)
        if not wrong:
            return cast("int", function(*arguments))
        if wrong not in refused:
            refused.add(wrong)
            log.error(
                "%s was not called: %s. The installed nvidia-ml-py does not fit; "
                "run pip install -U nvidia-ml-py.",
                name,
                wrong,
            )
        return int(lib.NVML_ERROR_INVALID_ARGUMENT)

    # nvidia-ml-py says there what a function returns that gives no number.
    return _Function(call, function)


class _Function:
    """A function of NVML behind a check; its attributes are the function's own."""

    def __init__(self, call: Callable[..., int], function: Any) -> None:
        object.__setattr__(self, "_call", call)
        object.__setattr__(self, "_function", function)

    def __call__(self, *arguments: Any) -> int:
        return cast("int", object.__getattribute__(self, "_call")(*arguments))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_function"), name, value)


def mismatch(name: str, arguments: tuple[Any, ...]) -> str:
    """Return why NVML's function *name* must not be called with *arguments*; empty when it may."""
    letters = TYPES.get(name)
    if letters is None:
        return "its types are not in the table of NVML's types"
    if len(arguments) != len(letters):
        return f"it takes {len(letters)} arguments, not {len(arguments)}"
    for place, (letter, value) in enumerate(zip(letters, arguments, strict=True), 1):
        if not (_is_pointer(value) if letter == "p" else _fits(value, _NUMBERS[letter])):
            return f"argument {place} is a {type(value).__name__}, not {_WORDS[letter]}"
    return ""


_WORDS: Final = {
    "p": "a pointer",
    "I": "an unsigned int",
    "i": "an int",
    "L": "an unsigned long long",
}


def _is_pointer(value: Any) -> bool:
    return value is None or isinstance(value, _POINTERS)


def _fits(value: Any, kind: type[Any]) -> bool:
    """Tell whether a number reaches C whole: plain integers go as an int of 32 bits."""
    if isinstance(value, int):
        return ctypes.sizeof(kind) == 4 and -(1 << 31) <= value < 1 << 32
    return isinstance(value, _SIMPLE) and ctypes.sizeof(value) == ctypes.sizeof(kind)
