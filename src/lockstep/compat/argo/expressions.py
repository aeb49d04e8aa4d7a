"""Argo's templates, conditions and dependencies as expressions of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from lockstep.compat.translation import Refused

_PLACE: Final = re.compile(r"\{\{(=?)(.*?)\}\}", re.DOTALL)
_PATH: Final = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_RUN: Final = {
    "workflow.name": "run.name",
    "workflow.namespace": "run.namespace",
    "workflow.uid": "run.uid",
    "workflow.status": "run.status",
    "workflow.creationTimestamp": "run.created",
    "workflow.creationTimestamp.RFC3339": "run.created",
    "workflow.serviceAccountName": "run.serviceAccountName",
    "workflow.parameters": "json(run.arguments)",
    "pod.name": "step.pod",
    "node.name": "step.id",
    "retries": "toText(step.attempt)",
    "lastRetry.exitCode": "toText(last.exitCode)",
    "lastRetry.message": "last.message",
    "lastRetry.status": "'Failed'",
    "item": "toText(item)",
}
_FUNCTIONS: Final = {"asInt": "int(number", "asFloat": "double(number", "string": "(toText"}
_WORDS: Final = {"and": "&&", "or": "||", "not": "!", "nil": "null"}
_LEXEME: Final = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<name>[A-Za-z_][\w-]*(?:\.[A-Za-z_]"""
    r"""[\w-]*|\[(?:'[^']*'|"[^"]*")\])*)|(?P<number>\d+(?:\.\d+)?)|(?P<sign>.))""",
    re.DOTALL,
)
_WHEN: Final = re.compile(
    r"""\s*(?:(?P<sign>==|!=|<=|>=|=~|!~|&&|\|\||[<>!()])|(?P<text>'[^']*'|"[^"]*")|"""
    r"""(?P<word>(?:\{\{.*?\}\}|[^\s'"=!<>()&|])+))""",
    re.DOTALL,
)
_DEPENDS: Final = re.compile(
    r"\s*(?:(?P<sign>&&|\|\||!|\(|\))|(?P<name>[\w-]+)(?:\.(?P<state>\w+))?)"
)
_STATES: Final = {
    "Succeeded": "Succeeded",
    "Failed": "Failed",
    "Errored": "Failed",
    "Skipped": "Skipped",
    "Omitted": "Omitted",
}


def quote(text: str) -> str:
    """Return *text* as a string of CEL."""
    return json.dumps(text, ensure_ascii=False)


def literal(text: str) -> str:
    """Return *text* so that no part of it is taken for an expression of ours."""
    return text.replace("${{", "${{ '$' }}{{")


def text(given: str, at: str) -> str:
    """Return *given* with what stands between braces as expressions.

    Raises:
        Refused: when something between braces is not known.
    """
    return "".join(
        "${{ " + part + " }}" if is_code else literal(part) for part, is_code in _parts(given, at)
    )


def tree(given: object, at: str) -> object:
    """Return a tree with all of its texts turned.

    Raises:
        Refused: when something between braces is not known.
    """
    if isinstance(given, str):
        return text(given, at)
    if isinstance(given, list):
        return [tree(one, f"{at}[{number}]") for number, one in enumerate(given)]
    if isinstance(given, dict):
        return {key: tree(one, f"{at}.{key}") for key, one in given.items()}
    return given


def _parts(given: str, at: str) -> Iterator[tuple[str, bool]]:
    end = 0
    for place in _PLACE.finditer(given):
        if place.start() > end:
            yield given[end : place.start()], False
        code = place[2].strip()
        yield (expression(code, at) if place[1] else reference(code, at)), True
        end = place.end()
    if end < len(given):
        yield given[end:], False


def reference(path: str, at: str) -> str:
    """Return the expression of what ``{{PATH}}`` stands for: a text.

    Raises:
        Refused: when it is not known.
    """
    found = _reference(path)
    if found is None:
        raise Refused(at, "{{" + path + "}}", "there is no such variable here")
    return found


def _reference(path: str) -> str | None:
    if path in _RUN:
        return _RUN[path]
    first, _, rest = path.partition(".")
    if first == "item" and rest:
        return f"toText(item[{quote(rest)}])"
    if first == "inputs" and rest.startswith("parameters."):
        return f"toText(inputs[{quote(rest[11:])}])"
    if first == "inputs" and rest == "parameters":
        return "json(inputs)"
    if first == "outputs" and rest.endswith(".path"):
        return f"outputs[{quote(rest.split('.', 1)[1][:-5])}].path"
    if first == "workflow" and rest.startswith("parameters."):
        return f"toText(run.arguments[{quote(rest[11:])}])"
    if first in ("steps", "tasks"):
        return _of_task(rest)
    return None


def _of_task(rest: str) -> str | None:
    name, _, what = rest.partition(".")
    task = f"tasks[{quote(name)}]"
    if what == "status":
        return f"{task}.state"
    if what == "outputs.result":
        return f'toText({task}.outputs["result"])'
    if what == "outputs.parameters":
        return f"json({task}.outputs)"
    if what.startswith("outputs.parameters."):
        return f"toText({task}.outputs[{quote(what[19:])}])"
    if what.startswith("outputs.artifacts."):
        return f"{task}.outputs[{quote(what[18:])}]"
    return None


def expression(given: str, at: str) -> str:
    """Return what stands behind ``{{=``, an expression of expr-lang, in CEL.

    Raises:
        Refused: when it uses something that is not known.
    """
    found: list[str] = []
    depth: list[int] = []
    level = 0
    for token in _LEXEME.finditer(given):
        if (name := token["name"]) is not None:
            if name in _FUNCTIONS:
                found.append(_FUNCTIONS[name])
                depth.append(level)
            else:
                found.append(_name(name, at))
        elif token["text"] is not None or token["number"] is not None:
            found.append(token[0].strip())
        else:
            sign = token["sign"]
            level += {"(": 1, ")": -1}.get(sign, 0)
            found.append(sign)
            if sign == ")" and depth and depth[-1] == level:
                depth.pop()
                found.append(")")
    return (
        " ".join(found)
        .replace("& &", "&&")
        .replace("| |", "||")
        .replace("= =", "==")
        .replace("! =", "!=")
        .replace("< =", "<=")
        .replace("> =", ">=")
    )


def _name(name: str, at: str) -> str:
    if name in ("true", "false", "in"):
        return name
    if name in _WORDS:
        return _WORDS[name]
    path = re.sub(r"\[['\"]([^'\"]*)['\"]\]", r".\1", name)
    found = _reference(path)
    if found is None:
        known = "asInt, asFloat, string, inputs, item, steps, tasks, workflow"
        raise Refused(at, name, f"is not served in expressions; known are {known}")
    return found


def when(given: str, at: str) -> str:
    """Return a condition, whose bare words are texts, in CEL.

    Raises:
        Refused: when it is no condition.
    """
    if given.strip().startswith("{{=") and given.strip().endswith("}}"):
        return expression(given.strip()[3:-2].strip(), at)
    tokens: list[tuple[str, str]] = []
    end = 0
    for token in _WHEN.finditer(given):
        if token.start() != end:
            break
        end = token.end()
        kind = token.lastgroup or "sign"
        tokens.append((kind, token[kind]))
    if given[end:].strip() or not tokens:
        raise Refused(
            at, given, "is no condition; write one such as '{{inputs.parameters.x}} == y'"
        )
    return _comparisons(tokens, at)


def _comparisons(tokens: list[tuple[str, str]], at: str) -> str:
    found: list[str] = []
    number = 0
    while number < len(tokens):
        kind, token = tokens[number]
        if kind == "sign":
            found.append(token)
            number += 1
            continue
        left = _operand(token, at)
        sign = tokens[number + 1][1] if number + 1 < len(tokens) else ""
        if sign not in ("==", "!=", "<", ">", "<=", ">=", "=~", "!~"):
            found.append(f'({left} == "true")')
            number += 1
            continue
        if number + 2 >= len(tokens) or tokens[number + 2][0] == "sign":
            raise Refused(at, token, f"something must stand behind {sign}")
        right = _operand(tokens[number + 2][1], at)
        found.append(f"({_compared(left, sign, right)})")
        number += 3
    return " ".join(found)


def _compared(left: str, sign: str, right: str) -> str:
    if sign in ("==", "!="):
        return f"{left} {sign} {right}"
    if sign in ("=~", "!~"):
        return f"{'!' if sign == '!~' else ''}{left}.matches({right})"
    return f"number({left}) {sign} number({right})"


def _operand(token: str, at: str) -> str:
    inner = token[1:-1] if token[0] in "'\"" else token
    parts = [part if is_code else quote(part) for part, is_code in _parts(inner, at)]
    return f"({' + '.join(parts)})" if parts else '""'


def depends(given: str, at: str) -> tuple[list[str], str]:
    """Return the tasks of a ``depends``, and the condition in CEL; empty where it is the usual.

    Raises:
        Refused: when it is no condition on tasks.
    """
    names: dict[str, None] = {}
    found: list[str] = []
    usual = True
    end = 0
    for token in _DEPENDS.finditer(given):
        if token.start() != end:
            break
        end = token.end()
        if (sign := token["sign"]) is not None:
            usual = usual and sign == "&&"
            found.append(sign)
            continue
        name, state = token["name"], token["state"]
        names[name] = None
        usual = usual and state is None
        found.append(_state(name, state, at))
    if given[end:].strip() or not names:
        raise Refused(at, given, "is no condition; write one such as 'a.Succeeded && b.Failed'")
    return [*names], "" if usual else " ".join(found)


def _state(name: str, state: str | None, at: str) -> str:
    task = f"tasks[{quote(name)}].state"
    if state is None:
        return f'({task} in ["Succeeded", "Skipped"])'
    if state not in _STATES:
        raise Refused(at, state, f"is not served; known are {', '.join(_STATES)}")
    return f"({task} == {quote(_STATES[state])})"


def condition(given: str, at: str) -> str:
    """Return a success or failure condition of a resource, as ``status.succeeded > 0``, in CEL.

    Raises:
        Refused: when it is no such condition.
    """
    found: list[str] = []
    for part in given.split(","):
        match = re.fullmatch(r"\s*([\w.-]+)\s*(==|=|!=|>=|<=|>|<)\s*(.+?)\s*", part)
        if match is None or not _PATH.fullmatch(match[1]):
            raise Refused(at, part, "write one such as 'status.succeeded > 0'")
        path, sign, value = match[1], match[2], match[3]
        steps = path.split(".")
        there = " && ".join(f"has(object.{'.'.join(steps[: i + 1])})" for i in range(len(steps)))
        own = _compared(f"toText(object.{path})", "==" if sign == "=" else sign, quote(value))
        found.append(f"({there} && {own})")
    return " && ".join(found)
