"""Requirements on labels, and the grammar in which they are written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lockstep.api.label_syntax import key_problems, value_problems


class SelectorError(ValueError):
    """A selector that cannot be read; the text says what was found and what was expected."""


class Op(StrEnum):
    """How a requirement relates a label to its values."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER = "gt"
    LESS = "lt"
    EXISTS = "exists"
    NOT_EXISTS = "!"


_BINARY: Final = "in, notin, =, ==, !=, gt, lt"
_SYMBOLS: Final = {"=": Op.EQUALS, "==": Op.DOUBLE_EQUALS, "!=": Op.NOT_EQUALS}
_OPERATORS: Final = {**_SYMBOLS, "in": Op.IN, "notin": Op.NOT_IN, ">": Op.GREATER, "<": Op.LESS}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    op: Op
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.op:
            case Op.EXISTS:
                return self.key
            case Op.NOT_EXISTS:
                return f"!{self.key}"
            case Op.IN | Op.NOT_IN:
                return f"{self.key} {self.op} ({','.join(self.values)})"
            case Op.GREATER | Op.LESS:
                return f"{self.key}{'>' if self.op is Op.GREATER else '<'}{self.values[0]}"
            case _:
                return f"{self.key}{self.op}{self.values[0]}"

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet this condition."""
        value = labels.get(self.key)
        match self.op:
            case Op.IN | Op.EQUALS | Op.DOUBLE_EQUALS:
                return value is not None and value in self.values
            case Op.NOT_IN | Op.NOT_EQUALS:
                return value is None or value not in self.values
            case Op.EXISTS:
                return value is not None
            case Op.NOT_EXISTS:
                return value is None
            case _:
                return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        number = _integer(value)
        bound = int(self.values[0])
        if number is None:
            return False
        return number > bound if self.op is Op.GREATER else number < bound


def parse_requirements(text: str) -> list[Requirement]:
    """Read requirements as they stand in a request, such as ``app=web,tier in (a,b),!old``.

    Raises:
        SelectorError: They cannot be read.
    """
    return _LabelParser(text).parse()


def requirement(key: str, op: Op, values: Sequence[str]) -> Requirement:
    """Return a requirement, checked.

    Raises:
        SelectorError: The key, a value or the number of values is not allowed.
    """
    problems = []
    if wrong := key_problems(key):
        problems.append(_invalid("key", key, "; ".join(wrong)))
    problems += _count_problems(op, values)
    for index, value in enumerate(values):
        if wrong := value_problems(value):
            problems.append(_invalid(f"values[{index}][{key}]", value, "; ".join(wrong)))
    if problems:
        joined = ", ".join(dict.fromkeys(problems))
        raise SelectorError(joined if len(problems) == 1 else f"[{joined}]")
    return Requirement(key, op, tuple(values))


def _count_problems(op: Op, values: Sequence[str]) -> list[str]:
    match op:
        case Op.IN | Op.NOT_IN if not values:
            detail = "for 'in', 'notin' operators, values set can't be empty"
        case Op.EXISTS | Op.NOT_EXISTS if values:
            detail = "values set must be empty for exists and does not exist"
        case Op.GREATER | Op.LESS if _integer(values[0]) is None:
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            return [_invalid("values[0]", values[0], detail)]
        case _:
            return []
    return [_invalid("values", list(values), detail)]


def _invalid(path: str, value: str | list[str], detail: str) -> str:
    shown = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"{path}: Invalid value: {shown}: {detail}"


def _integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else None


_END: Final = "end"
_WORD: Final = "word"
_PUNCTUATION: Final = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_TOKENS: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+)")
_Token = tuple[str, str]


def _tokens(text: str) -> list[_Token]:
    found = []
    for match in _TOKENS.finditer(text):
        literal = match.group(1)
        found.append((literal if literal in _PUNCTUATION else _WORD, literal))
    return [*found, (_END, "")]


class _LabelParser:
    """Recursive descent over the grammar of label selectors."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            kind, literal = self._look()
            if kind == _END:
                return requirements
            if kind not in {_WORD, "!"}:
                raise _unexpected(literal, "!, identifier, or 'end of string'")
            try:
                requirements.append(self._parse_requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            kind, literal = self._take()
            if kind == _END:
                return requirements
            if kind != ",":
                raise _unexpected(literal, "',' or 'end of string'")
            kind, literal = self._look()
            if kind not in {_WORD, "!"}:
                raise _unexpected(literal, "identifier after ','")

    def _look(self) -> _Token:
        return self._tokens[self._position]

    def _take(self) -> _Token:
        token = self._tokens[self._position]
        self._position = min(self._position + 1, len(self._tokens) - 1)
        return token

    def _parse_requirement(self) -> Requirement:
        kind, key = self._take()
        absent = kind == "!"
        if absent:
            kind, key = self._take()
        if kind != _WORD:
            raise _unexpected(key, "identifier")
        if wrong := key_problems(key):
            raise SelectorError(_invalid("<nil>", key, "; ".join(wrong)))
        if absent:
            return requirement(key, Op.NOT_EXISTS, [])
        if self._look()[0] in {_END, ","}:
            return requirement(key, Op.EXISTS, [])
        _, literal = self._take()
        op = _OPERATORS.get(literal)
        if op is None:
            raise _unexpected(literal, _BINARY)
        values = self._parse_values() if op in {Op.IN, Op.NOT_IN} else self._parse_value()
        return requirement(key, op, values)

    def _parse_value(self) -> list[str]:
        if self._look()[0] in {_END, ","}:
            return [""]
        kind, literal = self._take()
        if kind != _WORD:
            raise _unexpected(literal, "identifier")
        return [literal]

    def _parse_values(self) -> list[str]:
        kind, literal = self._take()
        if kind != "(":
            raise SelectorError(f"found '{literal}' expected: '('")
        kind, literal = self._look()
        if kind not in {_WORD, ",", ")"}:
            raise _unexpected(literal, "',', ')' or identifier")
        values = set()
        word = ""
        while True:
            kind, literal = self._take()
            if kind == _WORD:
                word = literal
                kind, literal = self._take()
                if kind not in {",", ")"}:
                    raise _unexpected(literal, "',' or ')'")
            elif kind not in {",", ")"}:
                raise _unexpected(literal, "',', or identifier")
            values.add(word)
            word = ""
            if kind == ")":
                return sorted(values)


def _unexpected(found: str, expected: str) -> SelectorError:
    return SelectorError(f"found '{found}', expected: {expected}")
