"""What is wrong with a run before anything of it starts, each with its place and remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from lockstep.api.pipeline import Fetch, Graph, Output, PipelineRunSpec, PodStep, Task, Template
from lockstep.api.validation import Problem
from lockstep.pipelines.core.objects import kind_of
from lockstep.pipelines.core.plan import Plan, cycle, plan
from lockstep.pipelines.core.values import BadExpression, compiled, expressions

_SYSTEM: Final = frozenset(
    {"", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys"}
    | {"/usr", "/usr/bin", "/usr/lib", "/var"}
)


def problems(spec: PipelineRunSpec) -> list[Problem]:
    """Return what is wrong with *spec*; nothing when it can run."""
    if spec.entry not in spec.templates:
        return [Problem("spec.entry", spec.entry, f"templates there are: {_names(spec.templates)}")]
    found: list[Problem] = []
    for name, template in spec.templates.items():
        found += _template(spec, template, f"spec.templates.{name}")
    entry = spec.templates[spec.entry]
    missing = [one for one in entry.inputs if one not in spec.arguments]
    if missing:
        found.append(Problem("spec.arguments", None, f"give a value for {', '.join(missing)}"))
    known = {*entry.inputs, *entry.defaults}
    for name in spec.arguments:
        if name not in known:
            allowed = f"{spec.entry} has the inputs {_names(known)}"
            found.append(Problem(f"spec.arguments.{name}", None, allowed))
    return found


def _names(names: Any) -> str:
    return ", ".join(sorted(names)) or "none"


def _template(spec: PipelineRunSpec, template: Template, at: str) -> Iterator[Problem]:
    parts = [n for n in ("graph", "pod", "object", "suspend") if getattr(template, n) is not None]
    if len(parts) > 1:
        yield Problem(at, ", ".join(parts), "a template is only one of these")
    yield from _compiled(template.outputs, f"{at}.outputs")
    yield from _compiled(template.defaults, f"{at}.defaults")
    for number, lock in enumerate(template.locks):
        yield from _compiled(lock.name, f"{at}.locks[{number}].name")
    if template.graph is not None:
        yield from _graph(spec, template.graph, f"{at}.graph")
    if template.pod is not None:
        yield from _pod(template.pod, f"{at}.pod")
    if template.object is not None:
        yield from _compiled(template.object.object, f"{at}.object.object")
        for field in ("success", "failure"):
            yield from _one(getattr(template.object, field), f"{at}.object.{field}")
        try:
            kind_of(template.object.object)
        except BadExpression as error:
            yield Problem(f"{at}.object.object.kind", None, str(error))


def _pod(pod: PodStep, at: str) -> Iterator[Problem]:
    yield from _compiled(pod.template, f"{at}.template")
    for number, path in enumerate(pod.shared):
        if not path.startswith("/") or path.rstrip("/") in _SYSTEM or ".." in path.split("/"):
            yield Problem(
                f"{at}.shared[{number}]",
                path,
                "must be an absolute path that holds nothing of the image, as /tmp/outputs",
            )
    lists: dict[str, Sequence[Fetch | Output]] = {"fetch": pod.fetch, "outputs": pod.outputs}
    for kind, files in lists.items():
        for number, one in enumerate(files):
            where = f"{at}.{kind}[{number}].path"
            yield from _compiled(one.path, where)
            if kind == "outputs" and not _shared(one.path, [*pod.shared, *_mounted(pod)]):
                below = ", ".join(pod.shared) or "pod.shared, which is empty"
                yield Problem(where, one.path, f"must lie below one of {below}")
    for number, patch in enumerate(pod.patch):
        yield from _compiled(patch, f"{at}.patch[{number}]")
    for number, fetch in enumerate(pod.fetch):
        yield from _compiled(fetch.artifact, f"{at}.fetch[{number}].artifact")
    seen: set[str] = set()
    for number, output in enumerate(pod.outputs):
        if output.name in seen:
            yield Problem(f"{at}.outputs[{number}].name", output.name, "is there twice")
        seen.add(output.name)


def _mounted(pod: PodStep) -> list[str]:
    """Return where the pod's containers mount volumes of its own."""
    containers = (pod.template.get("spec") or {}).get("containers") or []
    mounts = [one for each in containers for one in each.get("volumeMounts") or []]
    return [str(one.get("mountPath", "")) for one in mounts]


def _shared(path: str, shared: list[str]) -> bool:
    if path.startswith("${{"):
        return True  # it is known only when the step starts
    return any(f"{path}/".startswith(f"{one.rstrip('/')}/") for one in shared)


def _graph(spec: PipelineRunSpec, graph: Graph, at: str) -> Iterator[Problem]:
    seen: set[str] = set()
    wrong = False
    for number, task in enumerate(graph.tasks):
        where = f"{at}.tasks[{number}]"
        if task.name in seen:
            yield Problem(f"{where}.name", task.name, "another task has that name")
        seen.add(task.name)
        for problem in _task(spec, task, where):
            wrong = True
            yield problem
    if wrong:
        return
    found = plan(graph)
    yield from _references(found, at)
    if around := cycle(found):
        words = " -> ".join([*around, around[0]])
        yield Problem(f"{at}.tasks", words, "wait for each other; take one dependency out")
        return
    yield from _gangs(spec, graph, found, at)


def _gangs(spec: PipelineRunSpec, graph: Graph, found: Plan, at: str) -> Iterator[Problem]:
    """Yield why tasks that are to start together never would."""
    for number, task in enumerate(graph.tasks):
        if not task.gang:
            continue
        where = f"{at}.tasks[{number}]"
        if spec.templates[task.template].pod is None:
            yield Problem(f"{where}.gang", task.gang, "only steps that are pods form a gang")
        for field in ("when", "keep", "loop"):
            if getattr(task, field):
                words = "a task of a gang always runs, once; take it out of the gang"
                yield Problem(f"{where}.{field}", None, words)
        others = {one.name for one in graph.tasks if one.gang == task.gang} - {task.name}
        if waits := others & _all_before(found, task.name):
            words = f"{task.name} waits for {_names(waits)}: they cannot start together"
            yield Problem(f"{where}.gang", task.gang, words)
        for field, limit in (("graph", graph.parallelism), ("spec", spec.parallelism)):
            if 0 < limit <= len(others):
                words = f"the gang has {len(others) + 1} steps, and parallelism ({field}) is less"
                yield Problem(f"{where}.gang", task.gang, words)


def _all_before(found: Plan, name: str) -> set[str]:
    """Return every task that must be over before *name* starts."""
    seen: set[str] = set()
    left = list(found.before[name])
    while left:
        one = left.pop()
        if one not in seen:
            seen.add(one)
            left += found.before[one]
    return seen


def _references(found: Plan, at: str) -> Iterator[Problem]:
    for number, (name, before) in enumerate(found.before.items()):
        for other in before:
            if other not in found.tasks:
                yield Problem(
                    f"{at}.tasks[{number}]",
                    other,
                    f"task {name} waits for it; the graph has {_names(found.tasks)}",
                )


def _task(spec: PipelineRunSpec, task: Task, at: str) -> Iterator[Problem]:
    yield from _compiled(task.arguments, f"{at}.arguments")
    yield from _one(task.when, f"{at}.when")
    yield from _one(task.needs, f"{at}.needs")
    yield from _one(task.retry.when, f"{at}.retry.when")
    yield from _compiled(task.timeout or "", f"{at}.timeout")
    if task.loop is not None:
        yield from _compiled(task.loop.items, f"{at}.loop.items")
    template = spec.templates.get(task.template)
    if template is None:
        allowed = f"templates there are: {_names(spec.templates)}"
        yield Problem(f"{at}.template", task.template, allowed)
        return
    missing = [one for one in template.inputs if one not in task.arguments]
    if missing:
        allowed = f"template {task.template} needs {', '.join(missing)}"
        yield Problem(f"{at}.arguments", None, allowed)
    known = {*template.inputs, *template.defaults}
    for name in task.arguments:
        if name not in known:
            allowed = f"template {task.template} has the inputs {_names(known)}"
            yield Problem(f"{at}.arguments.{name}", None, allowed)


def _compiled(tree: Any, at: str) -> Iterator[Problem]:
    try:
        found = list(expressions(tree))
    except BadExpression as error:
        yield Problem(at, None, str(error))
        return
    for text in found:
        yield from _one(text, at)


def _one(text: str, at: str) -> Iterator[Problem]:
    if not text:
        return
    try:
        compiled(text)
    except BadExpression as error:
        yield Problem(at, None, str(error).splitlines()[0])
