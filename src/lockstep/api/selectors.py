"""Label and field selectors: read once, then asked for every object that passes by."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lockstep.api.label_syntax import key_problems, value_problems
from lockstep.api.meta import LabelSelector


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
_OBJECT_OPERATORS: Final = {
    "In": Op.IN,
    "NotIn": Op.NOT_IN,
    "Exists": Op.EXISTS,
    "DoesNotExist": Op.NOT_EXISTS,
}


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


class LabelMatch:
    """A label selector, ready to be asked; all of its requirements must hold."""

    __slots__ = ("_equal", "_rest", "nothing", "requirements")

    def __init__(self, requirements: Sequence[Requirement] = (), *, nothing: bool = False) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda r: r.key))
        self.nothing = nothing
        """Whether no object matches, as with a selector that is not set at all."""
        single = {Op.EQUALS, Op.DOUBLE_EQUALS, Op.IN}
        self._equal = tuple(
            (r.key, r.values[0]) for r in self.requirements if r.op in single and len(r.values) == 1
        )
        self._rest = tuple(r for r in self.requirements if r.op not in single or len(r.values) != 1)

    @property
    def everything(self) -> bool:
        """Whether every object matches."""
        return not self.requirements and not self.nothing

    @property
    def equal(self) -> Mapping[str, str]:
        """Labels that each match must have with these values; an index can narrow by them."""
        return dict(self._equal)

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether an object with these labels matches."""
        if self.nothing:
            return False
        found = labels or {}
        for key, value in self._equal:
            if found.get(key) != value:
                return False
        return all(requirement.holds(found) for requirement in self._rest)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"LabelMatch({str(self)!r}{', nothing=True' if self.nothing else ''})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelMatch):
            return NotImplemented
        return (self.requirements, self.nothing) == (other.requirements, other.nothing)

    def __hash__(self) -> int:
        return hash((self.requirements, self.nothing))


def parse_labels(text: str) -> LabelMatch:
    """Read a label selector as it stands in a request, such as ``app=web,tier in (a,b),!old``.

    Raises:
        SelectorError: It cannot be read.
    """
    return LabelMatch(_LabelParser(text).parse())


def from_selector(selector: LabelSelector | None) -> LabelMatch:
    """Compile a label selector object; one that is not set matches nothing, an empty one all.

    Raises:
        SelectorError: A key, a value or the number of values is not allowed.
    """
    if selector is None:
        return LabelMatch(nothing=True)
    requirements = [
        _requirement(key, Op.EQUALS, [value]) for key, value in selector.match_labels.items()
    ]
    for expression in selector.match_expressions:
        op = _OBJECT_OPERATORS.get(expression.operator)
        if op is None:
            raise SelectorError(f'"{expression.operator}" is not a valid label selector operator')
        requirements.append(_requirement(expression.key, op, expression.values))
    return LabelMatch(requirements)


def from_labels(labels: Mapping[str, str]) -> LabelMatch:
    """Match objects that have all of these labels, as a service's selector does."""
    return LabelMatch([Requirement(key, Op.EQUALS, (value,)) for key, value in labels.items()])


def _requirement(key: str, op: Op, values: Sequence[str]) -> Requirement:
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
            return _requirement(key, Op.NOT_EXISTS, [])
        if self._look()[0] in {_END, ","}:
            return _requirement(key, Op.EXISTS, [])
        _, literal = self._take()
        op = _OPERATORS.get(literal)
        if op is None:
            raise _unexpected(literal, _BINARY)
        values = self._parse_values() if op in {Op.IN, Op.NOT_IN} else self._parse_value()
        return _requirement(key, op, values)

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


class FieldMatch:
    """A field selector, ready to be asked; a field that is not there counts as empty."""

    __slots__ = ("terms",)

    def __init__(self, terms: Sequence[tuple[str, bool, str]] = ()) -> None:
        self.terms = tuple(terms)
        """Field, whether it must equal (or must differ from) the value, and the value."""

    @property
    def everything(self) -> bool:
        """Whether every object matches."""
        return not self.terms

    def exact(self, field: str) -> str | None:
        """Return the only value that the field may have, when the selector names one."""
        for name, equal, value in self.terms:
            if equal and name == field:
                return value
        return None

    def matches(self, values: Mapping[str, str]) -> bool:
        """Whether an object whose fields have these values matches."""
        return all((values.get(field, "") == value) is equal for field, equal, value in self.terms)

    def matches_by(self, read: Callable[[str], str]) -> bool:
        """Whether an object matches, reading only the fields that the selector names."""
        return all((read(field) == value) is equal for field, equal, value in self.terms)

    def require(self, known: Collection[str]) -> None:
        """Refuse fields that this resource cannot be selected by.

        Raises:
            SelectorError: A field is not among the known ones.
        """
        for field, _, _ in self.terms:
            if field in known:
                continue
            if set(known) <= {"metadata.name", "metadata.namespace"}:
                raise SelectorError(
                    f'"{field}" is not a known field selector: '
                    'only "metadata.name", "metadata.namespace"'
                )
            raise SelectorError(f"field label not supported: {field}")

    def __str__(self) -> str:
        return ",".join(
            f"{field}{'=' if equal else '!='}{_escape(value)}" for field, equal, value in self.terms
        )


_TERM: Final = re.compile(r"(?:\\.|[^,\\])+\\?|\\", re.DOTALL)
_TERM_OPERATOR: Final = re.compile(r"!=|==|=")


def parse_fields(text: str) -> FieldMatch:
    r"""Read a field selector, such as ``spec.nodeName=n1,status.phase!=Failed``.

    A comma, an equals sign or a backslash in a value is written with a backslash before it.

    Raises:
        SelectorError: It cannot be read.
    """
    terms = []
    for part in sorted(_TERM.findall(text)):
        operator = _TERM_OPERATOR.search(part)
        if operator is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        field, value = part[: operator.start()], _unescape(part[operator.end() :])
        if field or value:
            terms.append((field, operator.group() != "!=", value))
    return FieldMatch(terms)


def _escape(value: str) -> str:
    return re.sub(r"[\\,=]", lambda match: "\\" + match.group(), value)


def _unescape(value: str) -> str:
    def literal(match: re.Match[str]) -> str:
        sequence = match.group()
        if sequence in {"\\\\", "\\,", "\\="}:
            return sequence[1]
        if sequence.startswith("\\"):
            reason = f"invalid field selector: invalid escape sequence: {sequence}"
        else:
            # Kubernetes prints the character's number here, not the character.
            reason = f"invalid field selector: unescaped character in value: {ord(sequence)}"
        raise SelectorError(reason)

    return re.sub(r"\\.?|[,=]", literal, value, flags=re.DOTALL)
