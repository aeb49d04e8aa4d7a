"""Arena's command lines, read as its own parser reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from lockstep.cli.arena.flags import GLOBAL, Flag
from lockstep.cli.failure import BadInput

Values = dict[str, Any]

_TRUE: Final = {"1", "t", "true", "TRUE", "True", "T"}
_FALSE: Final = {"0", "f", "false", "FALSE", "False", "F"}
_EMPTY: Final[dict[str, object]] = {"list": (), "switch": False}
HELP: Final = ("-h", "--help")


class HelpAsked(Exception):
    """The words ask for help: with which *flags*."""

    def __init__(self, flags: Iterable[Flag]) -> None:
        super().__init__()
        self.flags = tuple(flags)


def key(flag: Flag) -> str:
    """Return the name under which the value of *flag* is found."""
    return flag.name.replace("-", "_")


def flags_help(what: str, flags: Iterable[Flag]) -> str:
    """Return the flags of ``arena WHAT``, and the field that each of them sets."""
    lines = [f"arena {what} FLAGS", ""]
    for flag in (*flags, *GLOBAL):
        spelled = ", ".join([f"-{flag.short}"] * bool(flag.short) + [f"--{flag.name}"])
        told = flag.becomes or "refused: not served"
        lines.append(f"  {spelled:<28} {flag.help or told}")
    return "\n".join(lines)


def parse(args: Sequence[str], flags: Iterable[Flag]) -> tuple[Values, list[str]]:
    """Return the values of *flags*, and the other words; a flag that is not given has its default.

    As in Go a switch takes a value only behind ``=``, and flags may stand anywhere before ``--``.

    Raises:
        BadInput: for a flag that is unknown, has no value, or one that makes no sense.
        HelpAsked: when one of the words asks for help.
    """
    flags = tuple(flags)
    known: dict[str, Flag] = {}
    values: Values = {}
    for flag in (*GLOBAL, *flags):
        known |= {f"--{name}": flag for name in (flag.name, *flag.also)}
        if flag.short:
            known[f"-{flag.short}"] = flag
        values[key(flag)] = flag.default if flag.default is not None else _EMPTY.get(flag.kind)
    given: set[str] = set()
    rest: list[str] = []
    todo = iter(args)
    for word in todo:
        if word == "--":
            return values, [*rest, *todo]
        if word in HELP:
            raise HelpAsked(flags)
        if not word.startswith("-") or word == "-":
            rest.append(word)
            continue
        flag, text = _flag(word, known, todo)
        value = _value(flag, word.partition("=")[0], text)
        if flag.kind == "list":
            before = values[key(flag)] if key(flag) in given else ()
            values[key(flag)] = [*before, *value]
        else:
            values[key(flag)] = value
        given.add(key(flag))
    return values, rest


def _flag(word: str, known: dict[str, Flag], todo: Iterator[str]) -> tuple[Flag, str]:
    name, equals, text = word.partition("=")
    found = known.get(name)
    if found is None and not word.startswith("--") and word[:2] in known:
        found, equals, text = known[word[:2]], "=", word[2:].removeprefix("=")
    if found is None:
        raise BadInput(f"unknown flag: {name}", "--help behind the command names its flags")
    if found.kind == "switch" and not equals:
        return found, "true"
    if not equals:
        following = next(todo, None)
        if following is None:
            raise BadInput(f"flag needs a value: {name}", f"write {name}=VALUE")
        return found, following
    return found, text


def _value(flag: Flag, name: str, text: str) -> Any:
    if flag.kind == "switch":
        if text not in _TRUE | _FALSE:
            raise BadInput(f"{name}: {text!r} is neither true nor false", f"write {name} alone")
        return text in _TRUE
    if flag.kind == "number":
        if not text.isdecimal():
            raise BadInput(f"{name}: {text!r} is no whole number", f"write {name}=1")
        return int(text)
    if flag.kind == "list":
        # Only this one is split: the others' values may hold commas.
        return text.split(",") if flag.name == "task-images" else [text]
    return text
