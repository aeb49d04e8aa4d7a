"""Argo's templates, conditions and dependencies as expressions of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lockstep.compat.translation import Refused

ARTIFACT: Final = "artifacts."
_PLACE: Final = re.compile(r"\{\{(=?)(.*?)\}\}", re.DOTALL)
_RUN: Final = {
    "workflow.name": "run.name",
    "workflow.namespace": "run.namespace",
    "workflow.uid": "run.uid",
    "workflow.status": "run.status",
    "workflow.creationTimestamp": "run.created",
    "workflow.creationTimestamp.RFC3339": "run.created",
    "workflow.serviceAccountName": "run.serviceAccountName",
    "workflow.parameters": "json(listed(run.arguments))",
    "workflow.parameters.json": "json(listed(run.arguments))",
    "workflow.duration": "toText(run.duration)",
    "workflow.failures": "json(run.failures)",
    "steps.name": "step.name",
    "tasks.name": "step.name",
    "lastRetry.duration": "toText(last.seconds)",
    "pod.name": "step.pod",
    "node.name": "step.id",
    "retries": "toText(step.attempt)",
    "lastRetry.exitCode": "toText(last.exitCode)",
    "lastRetry.message": "last.message",
    "lastRetry.status": "'Failed'",
    "item": "toText(item)",
}
_FUNCTIONS: Final = {
    "asInt": "int(number",
    "asFloat": "double(number",
    "string": "(toText",
    "toJson": "(json",
    "fromJson": "(parsed",
    "jsonpath": "(jsonpath",
}
_INFIX: Final = {
    "matches": "matches",
    "contains": "contains",
    "startsWith": "startsWith",
    "endsWith": "endsWith",
}
_WORDS: Final = {"and": "&&", "or": "||", "not": "!", "nil": "null"}
_LEXEME: Final = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<name>[A-Za-z_][\w-]*(?:\.[A-Za-z_]"""
    r"""[\w-]*|\[(?:'[^']*'|"[^"]*")\])*)|(?P<number>\d+(?:\.\d+)?)|(?P<sign>.))""",
    re.DOTALL,
)
_GIVEN: Final = re.compile(r"(?:steps|tasks)\.([\w-]+)\.outputs\.(?:parameters\.([\w-]+)|result)")
_WHEN: Final = re.compile(
    r"""\s*(?:(?P<sign>==|!=|<=|>=|=~|!~|&&|\|\||[<>!()])|(?P<text>'[^']*'|"[^"]*")|"""
    r"""(?P<word>(?:\{\{.*?\}\}|[^\s'"=!<>()&|])+))""",
    re.DOTALL,
)


def quote(text: str) -> str:
    """Return *text* as a string of CEL."""
    return json.dumps(text, ensure_ascii=False)


def kept(artifact: str) -> str:
    """Return the name of an artefact among the results of a step, which parameters are, too."""
    return ARTIFACT + artifact


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
        return "json(listed(inputs))"
    if first == "inputs" and rest.startswith("artifacts.") and rest.count(".") == 1:
        return f"inputs[{quote(rest[10:])}]"
    if path.startswith("workflow.outputs.parameters."):
        return f"toText(run.outputs[{quote(rest[19:])}])"
    if path.startswith("workflow.outputs.artifacts."):
        return f"run.outputs[{quote(kept(rest[18:]))}]"
    if first == "outputs" and rest.endswith(".path"):
        kind, _, name = rest.removesuffix(".path").partition(".")
        return f"outputs[{quote(kept(name) if kind == 'artifacts' else name)}].path"
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
    if what in ("id", "startedAt", "finishedAt"):
        return f"{task}.{what}"
    if what == "exitCode":
        return f"toText({task}.exitCode)"
    if what == "ip":
        return f'{task}.outputs["ip"]'
    if what == "outputs.result":
        return f'toText(together({task}.outputs["result"]))'
    if what == "outputs.parameters":
        return f"json(perItem({task}.outputs))"
    if what.startswith("outputs.parameters."):
        return f"toText({task}.outputs[{quote(what[19:])}])"
    if what.startswith("outputs.artifacts."):
        return f"{task}.outputs[{quote(kept(what[18:]))}]"
    return None


def fill(given: Any, known: Mapping[str, str]) -> Any:
    """Return a tree with what stands between braces replaced where its value is *known*."""
    if isinstance(given, str):
        return _PLACE.sub(lambda p: known.get(p[2].strip(), p[0]) if not p[1] else p[0], given)
    if isinstance(given, list):
        return [fill(one, known) for one in given]
    if isinstance(given, dict):
        return {key: fill(value, known) for key, value in given.items()}
    return given


def perhaps(given: str, at: str) -> str | None:
    """Return a reference to what a step that was skipped did not give: nothing, then.

    Return None where *given* is no such reference alone.
    """
    found = _PLACE.fullmatch(given.strip())
    guard = None if found is None or found[1] else _guard(found[2].strip())
    if found is None or guard is None:
        return None
    return "${{ " + f"{guard} ? {reference(found[2].strip(), at)} : null" + " }}"


def _guard(path: str) -> str | None:
    """Return the condition that what *path* refers to is there, where a step may not give it."""
    match = _GIVEN.fullmatch(path)
    if match is None:
        return None
    task = f"tasks[{quote(match[1])}]"
    skipped = f'{task}.state in ["Skipped", "Omitted"]'
    return f"(({quote(match[2] or 'result')} in {task}.outputs) || !({skipped}))"


def expression(given: str, at: str) -> str:
    """Return what stands behind ``{{=``, an expression of expr-lang, in CEL.

    Raises:
        Refused: when it uses something that is not known.
    """
    found: list[str] = []
    depth: list[int] = []
    level = 0
    open_ends = 0
    guards: list[str | None] = []
    given = _PLACE.sub(lambda place: f"parsed({place[2].strip()})", given)
    for token in _LEXEME.finditer(given):
        if (name := token["name"]) is not None:
            if name == "parsed":
                found.append(name)
            elif name in _INFIX and found:
                found[-1] = f"{found[-1]}.{_INFIX[name]}("
                depth.append(-1)
                continue
            elif name in _FUNCTIONS:
                found.append(_FUNCTIONS[name])
                depth.append(level)
            else:
                found.append(_name(name, at))
                guards.append(_guard(_path(name)))
        elif token["text"] is not None or token["number"] is not None:
            found.append(token[0].strip())
            if depth and depth[-1] == -1:
                depth.pop()
                found.append(")")
        elif token["sign"] == "?" and found and found[-1] == "?":
            found.pop()
            if not guards or guards[-1] is None:
                raise Refused(at, given, "?? is served behind an output of a step")
            found[-1] = f"({guards[-1]} ? {found[-1]} : "
            open_ends += 1
        else:
            sign = token["sign"]
            level += {"(": 1, ")": -1}.get(sign, 0)
            found.append(sign)
            if sign == ")" and depth and depth[-1] == level:
                depth.pop()
                found.append(")")
    return _joined([*found, ")" * open_ends])


def _joined(lexemes: list[str]) -> str:
    """Return an expression of its lexemes; signs of two characters were read one by one."""
    text = " ".join(lexemes)
    for sign in ("&&", "||", "==", "!=", "<=", ">="):
        text = text.replace(" ".join(sign), sign)
    return text


def _name(name: str, at: str) -> str:
    if name in ("true", "false", "in"):
        return name
    if name in _WORDS:
        return _WORDS[name]
    found = _reference(_path(name))
    if found is None:
        known = "asInt, asFloat, string, inputs, item, steps, tasks, workflow"
        raise Refused(at, name, f"is not served in expressions; known are {known}")
    return found


def _path(name: str) -> str:
    return re.sub(r"\[['\"]([^'\"]*)['\"]\]", r".\1", name)


def when(given: str, at: str) -> str:
    """Return a condition, whose bare words are texts, in CEL.

    Raises:
        Refused: when it is no condition.
    """
    whole = given.strip()
    if whole in ("true", "false"):
        return whole
    if whole.startswith("{{=") and whole.endswith("}}") and whole.count("{{") == 1:
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
        found.append(f"({compared(left, sign, right)})")
        number += 3
    return " ".join(found)


def compared(left: str, sign: str, right: str) -> str:
    """Return the comparison of two texts in CEL."""
    if sign in ("==", "!="):
        return f"{left} {sign} {right}"
    if sign in ("=~", "!~"):
        return f"{'!' if sign == '!~' else ''}{left}.matches({right})"
    return f"number({left}) {sign} number({right})"


def _operand(token: str, at: str) -> str:
    inner = token[1:-1] if token[0] in "'\"" else token
    parts = [part if is_code else quote(part) for part, is_code in _parts(inner, at)]
    return f"({' + '.join(parts)})" if parts else '""'
