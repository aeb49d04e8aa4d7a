"""What the tasks inside a loop or a condition see, where the compiler leaves it out.

The SDK's compiler forgets to hand a value on when only a text holds it, as ``f"{x}/{y}"`` in a loop
in a loop. It names the item of an inner loop as an input of the outer one. A body sees what stands
around it: what is missing is handed on from there.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lockstep.api.wire import Json

CHANNEL: Final = "pipelinechannel--"
SUBVAR: Final = "-subvar-"
"""Between the name of a loop's item and the key of it that is meant."""
_NAMED: Final = re.compile(r"inputs\.parameter(?:_value)?s\[(?:'([^']+)'|\"([^\"]+)\")\]")


def completed(tree: Mapping[str, Any]) -> Json:
    """Return the compiled pipeline *tree* in which each body is given what its tasks name."""
    found: Json = copy.deepcopy(dict(tree))
    scopes = _Scopes(found.get("components") or {})
    scopes.complete(found["root"])
    return found


def iterated(task: Mapping[str, Any]) -> str:
    """Return the name by which the body of a loop sees its item; empty where *task* is no loop."""
    iterator = task.get("parameterIterator") or task.get("artifactIterator") or {}
    return str(iterator.get("itemInput", ""))


class _Scopes:
    def __init__(self, components: Json) -> None:
        self.components = components
        self._done = set[str]()

    def complete(self, component: Json) -> None:
        """Hand on what the tasks of *component*, a graph, name; those inside it first."""
        tasks: Json = component["dag"].get("tasks") or {}
        own: Json = component.setdefault("inputDefinitions", {}).setdefault("parameters", {})
        for task in tasks.values():
            name = task["componentRef"]["name"]
            child = self.components.get(name) or {}
            if "dag" in child and name not in self._done:
                self._done.add(name)
                self.complete(child)
        inner = {item for task in tasks.values() if (item := iterated(task))}
        for name in [one for one in own if _of_item(one, inner)]:
            del own[name]  # the item of a loop in here, which nothing outside can give
        for task in tasks.values():
            self._give(task, tasks, own)
        used = {
            one.get("componentInputParameter")
            for task in tasks.values()
            for one in (task.get("inputs", {}).get("parameters") or {}).values()
        }
        for name in [one for one in own if one.startswith(CHANNEL) and one not in used]:
            del own[name]

    def _give(self, task: Json, tasks: Json, own: Json) -> None:
        child = self.components.get(task["componentRef"]["name"]) or {}
        declared = (child.get("inputDefinitions") or {}).get("parameters") or {}
        given: Json = task.get("inputs", {}).get("parameters") or {}
        item = iterated(task)
        for name, one in list(given.items()):
            source = one.get("componentInputParameter", "")
            if source and source not in own and CHANNEL + source in own:
                one["componentInputParameter"] = CHANNEL + source
            elif name.startswith(CHANNEL) and self._is_of_nothing(one, tasks, own):
                del given[name]  # asked for again below where the body has a use for it
        named = {*_named(task, given), *(declared if "dag" in child else ())}
        if "dag" in child:
            given = {k: one for k, one in given.items() if k in named or not k.startswith(CHANNEL)}
        for name in sorted(named):
            if name.startswith(CHANNEL) and name not in given and not _of_item(name, {item}):
                given[name] = self._source(name, tasks, own)
        task.setdefault("inputs", {})["parameters"] = given

    def _is_of_nothing(self, one: Json, tasks: Json, own: Json) -> bool:
        """Tell whether a value comes from an input or an output that is not there."""
        if made := one.get("taskOutputParameter"):
            producer = tasks.get(made["producerTask"])
            return producer is not None and made["outputParameterKey"] not in self._made(producer)
        return (
            bool(one.get("componentInputParameter")) and one["componentInputParameter"] not in own
        )

    def _made(self, task: Json) -> Json:
        child = self.components.get(task["componentRef"]["name"]) or {}
        return (child.get("outputDefinitions") or {}).get("parameters") or {}

    def _source(self, name: str, tasks: Json, own: Json) -> Json:
        """Return where a graph has the value *name* from: one of its tasks, or its own inputs."""
        for producer, task in tasks.items():
            key = name.removeprefix(f"{CHANNEL}{producer}-")
            if key != name and key in self._made(task):
                return {
                    "taskOutputParameter": {"producerTask": producer, "outputParameterKey": key}
                }
        plain = name.removeprefix(CHANNEL)
        if name not in own and plain in own:
            return {"componentInputParameter": plain}
        own.setdefault(name, {})
        return {"componentInputParameter": name}


def _of_item(name: str, items: set[str]) -> bool:
    return name in items or name.partition(SUBVAR)[0] in items


def _named(task: Json, given: Json) -> Iterator[str]:
    """Yield the inputs that the condition, the items and the texts of a task name."""
    iterator = task.get("parameterIterator") or {}
    if source := (iterator.get("items") or {}).get("inputParameter"):
        yield source
    texts = [(task.get("triggerPolicy") or {}).get("condition", "")]
    constants = (one.get("runtimeValue", {}).get("constant") for one in given.values())
    for text in [*texts, *(one for one in constants if isinstance(one, str))]:
        for found in _NAMED.finditer(text):
            yield found[1] or found[2]
