"""A compiled pipeline as the spec of a run: components become templates, tasks stay tasks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.compat.kfp import placeholders
from lockstep.compat.kfp.containers import container_template, importer_template
from lockstep.compat.kfp.placeholders import quote
from lockstep.compat.kfp.scopes import CHANNEL, SUBVAR, completed, iterated
from lockstep.compat.translation import Refused

ROOT: Final = "main"
_VERSION: Final = re.compile(r"2\.[01](\.\d+)?")
_CHANNEL: Final = re.compile(r"inputs\.parameter_values\[(?:'([^']+)'|\"([^\"]+)\")\]")
_SELECTOR: Final = re.compile(r"parseJson\(string_value\)((?:\[[^\]]+\])*)")
_TASK: Final = frozenset(
    {"artifactIterator", "cachingOptions", "componentRef", "dependentTasks", "inputs"}
    | {"iteratorPolicy", "parameterIterator", "retryPolicy", "taskInfo", "triggerPolicy"}
)
_ENDED: Final = "ALL_UPSTREAM_TASKS_COMPLETED"


def is_pipeline(tree: Any) -> bool:
    """Tell whether *tree* is what KFP's compiler writes."""
    return isinstance(tree, dict) and "pipelineInfo" in tree and "root" in tree


def translate(tree: Mapping[str, Any], platform: Mapping[str, Any] | None = None) -> Json:
    """Return the spec of a run for the pipeline *tree* with its *platform* part.

    Raises:
        Refused: when something in it is not honoured here; the problem names it.
    """
    version = str(tree.get("schemaVersion", ""))
    if not _VERSION.fullmatch(version):
        raise Refused("schemaVersion", version, "compile it with kfp 2: 2.0 and 2.1 are known")
    return _Pipeline(completed(tree), platform or {}).spec()


def name_of(tree: Mapping[str, Any]) -> str:
    """Return the name of a pipeline."""
    return str(tree["pipelineInfo"].get("name", "pipeline"))


def parameters(tree: Mapping[str, Any]) -> dict[str, str]:
    """Return the types of a pipeline's parameters by name."""
    given = (tree["root"].get("inputDefinitions") or {}).get("parameters") or {}
    return {name: str(one.get("parameterType", "STRING")) for name, one in given.items()}


class _Pipeline:
    def __init__(self, tree: Mapping[str, Any], platform: Mapping[str, Any]) -> None:
        self.tree = tree
        self.components: Json = tree.get("components") or {}
        self.executors: Json = (tree.get("deploymentSpec") or {}).get("executors") or {}
        kubernetes = (platform.get("platforms") or {}).get("kubernetes") or {}
        self.platform: Json = (kubernetes.get("deploymentSpec") or {}).get("executors") or {}

    def spec(self) -> Json:
        templates: Json = {ROOT: self._dag(self.tree["root"], "root")}
        for name, component in self.components.items():
            templates[name] = self._component(component, f"components.{name}")
        found: Json = {"entry": ROOT, "templates": templates}
        root = self.tree.get("defaultPipelineRoot")
        return found | ({"root": root} if root else {})

    def _component(self, component: Json, at: str) -> Json:
        if "dag" in component:
            return self._dag(component, at)
        label = component.get("executorLabel", "")
        executor = self.executors.get(label)
        where = f"deploymentSpec.executors.{label}"
        if executor is None:
            raise Refused(f"{at}.executorLabel", label, "there is no such executor")
        common = _inputs(component)
        # What stands in the place of a number or a name of the executor is given by the tasks.
        common["defaults"] |= dict.fromkeys(self._unnamed(label) - {*_input_names(component)})
        if "container" in executor:
            return common | container_template(
                executor["container"], component, self.platform.get(label) or {}, where
            )
        if "importer" in executor:
            return common | importer_template(executor["importer"], where)
        kinds = ", ".join(executor)
        raise Refused(where, kinds, "only containers and importers run here")

    def _unnamed(self, label: str) -> set[str]:
        """Return the inputs that tasks of an executor are given, whether it names them or not."""
        dags = [self.tree["root"], *self.components.values()]
        tasks = [one for dag in dags for one in (dag.get("dag", {}).get("tasks") or {}).values()]
        own = [
            task
            for task in tasks
            if self.components.get(_reference(task), {}).get("executorLabel") == label
        ]
        given = {n for task in own for n in (task.get("inputs") or {}).get("parameters") or {}}
        return {name for name in given if not name.startswith(CHANNEL)}

    def _dag(self, component: Json, at: str) -> Json:
        dag = component["dag"]
        tasks = [
            self._task(name, task, f"{at}.dag.tasks.{name}")
            for name, task in (dag.get("tasks") or {}).items()
        ]
        outputs = dag.get("outputs") or {}
        found: Json = {}
        for name, one in (outputs.get("parameters") or {}).items():
            found[name] = (
                "${{ " + _dag_parameter(one, f"{at}.dag.outputs.parameters.{name}") + " }}"
            )
        for name, one in (outputs.get("artifacts") or {}).items():
            chosen = [
                _produced(one["producerSubtask"], one["outputArtifactKey"])
                for one in one["artifactSelectors"]
            ]
            found[name] = "${{ " + _first(chosen) + " }}"
        return _inputs(component) | {"graph": {"tasks": tasks}, "outputs": found}

    def _task(self, name: str, task: Json, at: str) -> Json:
        for field in task:
            if field not in _TASK:
                raise Refused(f"{at}.{field}", None, "it is not served by Lockstep; leave it out")
        reference = _reference(task)
        component = self.components.get(reference)
        if component is None:
            raise Refused(f"{at}.componentRef.name", reference, "there is no such component")
        values = dict(self._values(name, task, component, at))
        found: Json = {"name": name, "template": reference}
        found["after"] = list(task.get("dependentTasks") or [])
        trigger = task.get("triggerPolicy") or {}
        if condition := trigger.get("condition"):
            found["when"] = _condition(condition, values, f"{at}.triggerPolicy.condition")
        if trigger.get("strategy") == _ENDED:
            found["exit"] = True
        found |= _loop(task, values, at)
        if item := iterated(task):
            for key in _input_names(component):
                if key.startswith(f"{item}{SUBVAR}") and key not in values:
                    values[key] = f"parsed(item)[{quote(key.partition(SUBVAR)[2])}]"
        # What only fills the placeholders of other inputs is no input of the component.
        own = {*_input_names(component)}
        helpers = {key for key in values if key.startswith(CHANNEL) and key not in own}
        found["arguments"] = {k: _argument(v) for k, v in values.items() if k not in helpers}
        found |= _retry(task.get("retryPolicy") or {}) | _keep(task, component)
        return found

    def _values(
        self, task_name: str, task: Json, component: Json, at: str
    ) -> Iterator[tuple[str, Any]]:
        """Yield each input of a task: a constant as ("constant", it), or an expression."""
        inputs = task.get("inputs") or {}
        types = (component.get("inputDefinitions") or {}).get("parameters") or {}
        given: Json = inputs.get("parameters") or {}
        values = {
            name: _parameter(one, (types.get(name) or {}).get("parameterType"), where)
            for name, one in given.items()
            for where in [f"{at}.inputs.parameters.{name}"]
        }
        known = {name: one for name, one in values.items() if isinstance(one, str)}
        for name, one in values.items():
            if isinstance(one, tuple) and isinstance(one[1], str) and "{{$" in one[1]:
                where = f"{at}.inputs.parameters.{name}"
                yield name, ("text", placeholders.argument(one[1], where, task_name, known))
            else:
                yield name, one
        for name, one in (inputs.get("artifacts") or {}).items():
            if "componentInputArtifact" in one:
                yield name, f"inputs[{quote(one['componentInputArtifact'])}]"
            elif "taskOutputArtifact" in one:
                made = one["taskOutputArtifact"]
                yield name, _produced(made["producerTask"], made["outputArtifactKey"])
            else:
                raise Refused(f"{at}.inputs.artifacts.{name}", None, "this source is not known")


def _inputs(component: Json) -> Json:
    """Return the inputs of a component: those that must be given, and what the others are else."""
    given = component.get("inputDefinitions") or {}
    inputs: list[str] = []
    defaults: Json = {}
    for kind in ("parameters", "artifacts"):
        for name, one in (given.get(kind) or {}).items():
            if one.get("isOptional") or "defaultValue" in one:
                value = typed(one.get("defaultValue"), one.get("parameterType"))
                defaults[name] = placeholders.literal(value) if isinstance(value, str) else value
            else:
                inputs.append(name)
    return {"inputs": inputs, "defaults": defaults}


def _reference(task: Json) -> str:
    return str(task["componentRef"]["name"])


def _input_names(component: Json) -> Iterator[str]:
    """Yield the names of what a component takes."""
    for given in (component.get("inputDefinitions") or {}).values():
        yield from given


def typed(value: Any, type_: str | None) -> Any:
    """Return *value* as a parameter of *type_*: protobuf's JSON writes whole numbers as 5.0."""
    if type_ == "NUMBER_DOUBLE":
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return float(value) if is_whole else value
    return _whole(value)


def _whole(value: Any) -> Any:
    """Return *value* with whole numbers where protobuf has only its one kind of number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if isinstance(value, dict):
        return {key: _whole(one) for key, one in value.items()}
    return value


def _parameter(one: Json, type_: str | None, at: str) -> Any:
    found: Any
    if "runtimeValue" in one:
        constant = one["runtimeValue"].get("constant")
        return ("constant", typed(constant, type_))
    if "componentInputParameter" in one:
        found = f"inputs[{quote(one['componentInputParameter'])}]"
    elif "taskOutputParameter" in one:
        made = one["taskOutputParameter"]
        found = _produced(made["producerTask"], made["outputParameterKey"])
    elif "taskFinalStatus" in one:
        producer = f"tasks[{quote(one['taskFinalStatus']['producerTask'])}]"
        found = (
            f"{{'state': {producer}.state == 'Succeeded' ? 'SUCCEEDED' : 'FAILED', "
            f"'pipelineTaskName': {quote(one['taskFinalStatus']['producerTask'])}, "
            f"'pipelineJobResourceName': run.name, "
            f"'error': {{'code': 0, 'message': {producer}.message}}}}"
        )
    else:
        raise Refused(at, None, "this source of a parameter is not known")
    if selector := one.get("parameterExpressionSelector"):
        chosen = _SELECTOR.fullmatch(selector)
        if chosen is None:
            raise Refused(f"{at}.parameterExpressionSelector", selector, "it is not known")
        found = f"parsed({found}){chosen[1]}"
    return found


def _produced(task: str, output: str) -> str:
    return f"tasks[{quote(task)}].outputs[{quote(output)}]"


def _first(chosen: list[str]) -> str:
    """Return the expression of the first of some results that is there; null where none is.

    What a skipped condition would have given is not there.
    """
    found = "null"
    for one in reversed(chosen):
        source, _, key = one.rpartition("[")
        found = f"({key.rstrip(']')} in {source} && {one} != null ? {one} : {found})"
    return found


def _dag_parameter(one: Json, at: str) -> str:
    if "valueFromParameter" in one:
        source = one["valueFromParameter"]
        return _first([_produced(source["producerSubtask"], source["outputParameterKey"])])
    if "valueFromOneof" in one:
        chosen = [
            _produced(source["producerSubtask"], source["outputParameterKey"])
            for source in one["valueFromOneof"]["parameterSelectors"]
        ]
        return _first(chosen)
    raise Refused(at, None, "this source of an output is not known")


def _argument(value: Any) -> Any:
    if isinstance(value, tuple):
        return value[1] if value[0] == "text" else _escaped(value[1])
    return "${{ " + value + " }}"


def _escaped(tree: Any) -> Any:
    if isinstance(tree, str):
        return placeholders.literal(tree)
    if isinstance(tree, list):
        return [_escaped(one) for one in tree]
    if isinstance(tree, dict):
        return {key: _escaped(one) for key, one in tree.items()}
    return tree


def _code(value: Any, at: str) -> str:
    """Return the expression of an input's value."""
    if not isinstance(value, tuple):
        return f"({value})"
    if value[0] == "text":
        raise Refused(at, value[1], "a condition on a placeholder is not served")
    return json.dumps(value[1], ensure_ascii=False)


def _condition(text: str, values: Mapping[str, Any], at: str) -> str:
    def found(channel: re.Match[str]) -> str:
        name = channel[1] or channel[2]
        if name not in values:
            raise Refused(at, text, f"the task has no input {name}")
        return _code(values[name], at)

    return _CHANNEL.sub(found, text)


def _loop(task: Json, values: dict[str, Any], at: str) -> Json:
    iterator = task.get("parameterIterator") or task.get("artifactIterator")
    if iterator is None:
        return {}
    items = iterator.get("items") or {}
    if "raw" in items:
        listed = placeholders.literal(items["raw"])
    else:
        source = items.get("inputParameter") or items.get("inputArtifact") or ""
        if source not in values:
            raise Refused(f"{at}.parameterIterator.items", items, "the task has no such input")
        value = values[source]
        listed = (
            placeholders.literal(json.dumps(value[1]))
            if isinstance(value, tuple)
            else "${{ " + value + " }}"
        )
    values[iterator["itemInput"]] = "item"
    limit = (task.get("iteratorPolicy") or {}).get("parallelismLimit", 0)
    return {"loop": {"items": listed, "parallelism": int(limit)}}


def _retry(policy: Json) -> Json:
    if not policy:
        return {}
    found: Json = {"limit": int(policy.get("maxRetryCount", 0))}
    if (backoff := policy.get("backoffDuration")) and backoff != "0s":
        found["backoff"] = backoff
    if factor := policy.get("backoffFactor"):
        found["factor"] = max(1, int(factor))
    if longest := policy.get("backoffMaxDuration"):
        found["longest"] = longest
    return {"retry": found}


def _keep(task: Json, component: Json) -> Json:
    options = task.get("cachingOptions") or {}
    if not options.get("enableCache") or "executorLabel" not in component:
        return {}
    return {"keep": {"key": options["cacheKey"]} if options.get("cacheKey") else {}}
