"""Label and field selectors: read once, then asked for every object that passes by."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from lockstep.api.label_requirements import (
    Op,
    Requirement,
    SelectorError,
    parse_requirements,
    requirement,
)
from lockstep.api.meta import LabelSelector

__all__ = [
    "FieldMatch",
    "LabelMatch",
    "SelectorError",
    "from_labels",
    "from_selector",
    "parse_fields",
    "parse_labels",
]

_OBJECT_OPERATORS: Final = {
    "In": Op.IN,
    "NotIn": Op.NOT_IN,
    "Exists": Op.EXISTS,
    "DoesNotExist": Op.NOT_EXISTS,
}


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
    return LabelMatch(parse_requirements(text))


def from_selector(selector: LabelSelector | None) -> LabelMatch:
    """Compile a label selector object; one that is not set matches nothing, an empty one all.

    Raises:
        SelectorError: A key, a value or the number of values is not allowed.
    """
    if selector is None:
        return LabelMatch(nothing=True)
    requirements = [
        requirement(key, Op.EQUALS, [value]) for key, value in selector.match_labels.items()
    ]
    for expression in selector.match_expressions:
        op = _OBJECT_OPERATORS.get(expression.operator)
        if op is None:
            raise SelectorError(f'"{expression.operator}" is not a valid label selector operator')
        requirements.append(requirement(expression.key, op, expression.values))
    return LabelMatch(requirements)


def from_labels(labels: Mapping[str, str]) -> LabelMatch:
    """Match objects that have all of these labels, as a service's selector does."""
    return LabelMatch([Requirement(key, Op.EQUALS, (value,)) for key, value in labels.items()])


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
