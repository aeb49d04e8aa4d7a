"""The CEL rules of custom resources (``x-kubernetes-validations``).

The library that evaluates them is imported when the first rule is met: a server without such
custom resources never loads it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep.api.wire import Json
from lockstep.apiserver.budget import Costly, Stopwatch, refused, require_small
from lockstep.apiserver.schema.causes import Cause, Reason, forbidden, invalid, required, show
from lockstep.apiserver.schema.cel_functions import FUNCTIONS, LANGUAGE
from lockstep.apiserver.schema.check import correlate
from lockstep.apiserver.schema.node import UNSET, Node, escaped

if TYPE_CHECKING:
    from cel import Program

_OPERATOR = re.compile(r"[^A-Za-z]")
_USE = re.compile(r"\b(self|oldSelf)\b(?:\.(\w+)\b(?!\s*\())?")
_LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'" + r'|"(?:[^"\\]|\\.)*"')
_MESSAGE_LIMIT = 5 * 1024
_RULE_LIMIT = 10_000
"""Characters of a rule: to compile one takes a time that grows with it."""
# What goes through its input once for every part of it, or returns more than it was given.
_LOOP = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter|distinct|join|replace)\s*\(")
_LITTLE = 20_000
"""Steps of a rule that are taken on the event loop; some milliseconds."""
_LOOP_SECONDS = 0.02


class RuleError(ValueError):
    """A rule cannot be used; the message says why, as the API server would."""


@dataclass(frozen=True, slots=True)
class _Rule:
    given: Json
    program: Program
    message: Program | None
    uses_old: bool
    fields: frozenset[str] | None
    """The only fields that the rule looks at, where it does not look at the whole.

    What a rule sees is copied for it, and a job's pod templates are large.
    """
    loops: int
    """How often one loop may be inside another, or feed it."""
    length: int
    """How many characters the rule has."""

    @property
    def text(self) -> str:
        """What the rule is called where it fails: its message, or else itself."""
        return str(self.given.get("message") or self.given["rule"]).strip()


class Rules:
    """The rules of one schema, compiled."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._compiled: dict[int, list[_Rule]] = {}
        self._watch = Stopwatch(_LOOP_SECONDS)

    def check(self, obj: Json, old: Json | None) -> list[Cause]:
        """Return which rules *obj* breaks, where it replaces *old* if that is given.

        Raises:
            Costly: when that may take long, and this is not a fork.
        """
        causes: list[Cause] = []
        self._watch = Stopwatch(_LOOP_SECONDS)
        self._check(self._root, obj, UNSET if old is None else old, "", causes)
        return causes

    def _check(self, node: Node, value: Any, old: Any, path: str, causes: list[Cause]) -> None:
        if value is None:
            return
        for rule in self._rules(node):
            self._watch.check()
            causes += _evaluate(rule, node, value, old, path or "<nil>")
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for key, member in value.items():
                child = node.child(key)
                if child is not None and child.ruled:
                    below = f"{path}.{key}" if key in node.properties else f"{path}[{key}]"
                    earlier = before.get(key, UNSET)
                    self._check(child, member, earlier, below.removeprefix("."), causes)
        elif isinstance(value, list) and node.items is not None and node.items.ruled:
            earlier = correlate(node, value, old)
            for position, item in enumerate(value):
                at = f"{path}[{position}]"
                self._check(node.items, item, earlier[position], at, causes)

    def _rules(self, node: Node) -> list[_Rule]:
        if not node.rules:
            return []
        if id(node) not in self._compiled:
            self._compiled[id(node)] = [_compile(given) for given in node.rules]
        return self._compiled[id(node)]


def problems(given: Json) -> list[str]:
    """Return why a rule cannot be used; nothing when it can."""
    try:
        _compile(given)
    except RuleError as error:
        return [str(error)]
    return []


def undefined_fields(rule: str, properties: Collection[str]) -> list[str]:
    """Return what a rule reads of ``self`` that is none of the *properties* there."""
    text = _LITERAL.sub("''", rule)
    known = {escaped(name) for name in properties}
    read = (name for variable, name in _USE.findall(text) if variable == "self" and name)
    return [name for name in dict.fromkeys(read) if name not in known]


def _compile(given: Json) -> _Rule:
    program = _program(given["rule"])
    expression = given.get("messageExpression")
    message = _program(expression) if expression else None
    text = f"{given['rule']} {expression or ''}"
    return _Rule(
        given,
        program,
        message,
        uses_old="oldSelf" in program.variables(),
        fields=_fields(text),
        loops=len(_LOOP.findall(text)),
        length=len(text),
    )


def _fields(text: str) -> frozenset[str] | None:
    used = [name for _, name in _USE.findall(text)]
    return frozenset(used) if all(used) else None


def _program(text: str) -> Program:
    import cel

    if len(text) > _RULE_LIMIT:
        raise RuleError(f"Too long: may not be more than {_RULE_LIMIT} characters")
    try:
        program = cel.compile(text)
    except ValueError as error:
        raise RuleError(f"compilation failed: {error}") from error
    for name in program.functions():
        if not _OPERATOR.search(name) and name not in FUNCTIONS and name not in LANGUAGE:
            raise RuleError(
                f"compilation failed: ERROR: undeclared reference to '{name}' (in container '')"
            )
    return program


def _evaluate(rule: _Rule, node: Node, value: Any, old: Any, path: str) -> list[Cause]:
    is_optional = bool(rule.given.get("optionalOldSelf"))
    if old is UNSET and rule.uses_old and not is_optional:
        return []
    if old is not UNSET and old == value and not rule.uses_old:
        # What was stored before the rule existed may stay as long as it is not touched.
        return []
    variables = {"self": _seen(rule, node, value)}
    if rule.uses_old:
        variables["oldSelf"] = _old(rule, node, old, is_optional)
    _require_cheap(rule, variables)
    try:
        outcome = _run(rule.program, variables)
    except Costly:
        raise
    except Exception as error:
        # A rule may fail in any way; that it has is what the client must know.
        return [invalid(path, node.type, _words(error, rule.text))]
    return [] if outcome is True else [_broken(rule, node, value, variables, path)]


def _require_cheap(rule: _Rule, variables: dict[str, Any]) -> None:
    """Require that a rule takes few steps, also on the largest object.

    Without loops each of its places is evaluated once, over all of the input at most; each loop
    does that once more for every part of its input.
    """
    once = 1 + rule.length / 16
    widest = (_LITTLE / once) ** (1 / (rule.loops + 1))
    parts = weight(list(variables.values()), widest) + (rule.length / 16 if rule.loops else 0)
    require_small(once * parts ** (rule.loops + 1), _LITTLE)


def weight(value: Any, limit: float) -> float:
    """Return how many parts *value* has, or some number above *limit* when it has more."""
    parts, left = 0.0, [value]
    while left and parts <= limit:
        one = left.pop()
        parts += 1
        if isinstance(one, dict):
            parts += len(one)
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)
        elif isinstance(one, str | bytes):
            parts += len(one) / 64
    return parts


def _run(program: Program, variables: dict[str, Any]) -> Any:
    import cel

    wanted = {name: FUNCTIONS[name] for name in program.functions() if name in FUNCTIONS}
    before = refused()
    try:
        return program.execute(cel.Context(variables=variables, functions=wanted))
    finally:
        # The library makes another error of it, or goes on without the function's answer.
        if refused() != before:
            raise Costly(program.source)


def _broken(rule: _Rule, node: Node, value: Any, variables: dict[str, Any], path: str) -> Cause:
    given = rule.given
    if field := given.get("fieldPath"):
        path = field.lstrip(".") if path == "<nil>" else f"{path}.{field.lstrip('.')}"
    detail = _message(rule, variables) or given.get("message", "").strip()
    detail = detail or f"failed rule: {rule.text}"
    match given.get("reason"):
        case Reason.FORBIDDEN:
            return forbidden(path, detail)
        case Reason.REQUIRED:
            return required(path, detail)
        case Reason.DUPLICATE:
            shown = "" if isinstance(value, dict | list) else f": {show(value)}"
            return Cause(path, Reason.DUPLICATE, f"Duplicate value{shown}")
    if node.type in ("object", "array"):
        return Cause(path, Reason.INVALID, f"Invalid value: {detail}")
    return invalid(path, value, detail)


def _message(rule: _Rule, variables: dict[str, Any]) -> str:
    """Return what the rule's own expression says, or nothing where that is no use."""
    if rule.message is None:
        return ""
    try:
        text = _run(rule.message, variables)
    except Costly:
        raise
    except Exception:
        return ""
    if not isinstance(text, str) or "\n" in text.strip() or len(text) > _MESSAGE_LIMIT:
        return ""
    return text.strip()


def _old(rule: _Rule, node: Node, old: Any, is_optional: bool) -> Any:
    if not is_optional:
        return _seen(rule, node, old)
    import cel

    empty = cel.OptionalValue.none()
    return empty if old is UNSET else cel.OptionalValue.of(_for_cel(node, old))


def _seen(rule: _Rule, node: Node, value: Any) -> Any:
    if rule.fields is None or node.translated or not isinstance(value, dict):
        return _for_cel(node, value)
    return {name: value[name] for name in rule.fields if name in value}


def _for_cel(node: Node, value: Any) -> Any:
    """Return *value* as rules see it: names escaped, times and the like in their own types."""
    if not node.translated:
        return value
    if isinstance(value, dict):
        return {
            escaped(key) if key in node.properties else key: _member(node, key, member)
            for key, member in value.items()
        }
    if isinstance(value, list) and node.items is not None:
        return [_for_cel(node.items, item) for item in value]
    return _typed(node, value) if isinstance(value, str) else value


def _member(node: Node, key: str, member: Any) -> Any:
    child = node.child(key)
    return member if child is None else _for_cel(child, member)


def _typed(node: Node, value: str) -> Any:
    match node.bounds.get("format"):
        case "date-time" | "date":
            moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        case "duration":
            return _program(f"duration({show(value)})").execute({})
        case "byte":
            return base64.b64decode(value)
    return value


def _words(error: Exception, rule: str) -> str:
    """Return how the API server says that *rule* has failed to run."""
    if isinstance(error, TypeError):
        return (
            "'no such overload': call arguments did not match a supported operator, function or "
            f"macro signature for rule: {rule}"
        )
    if isinstance(error, KeyError):
        text = f"no such key: {error.args[0]}"
    elif isinstance(error, ZeroDivisionError):
        text = "division by zero"
    else:
        text = str(error).splitlines()[0]
    return f"{text} evaluating rule: {rule}"
