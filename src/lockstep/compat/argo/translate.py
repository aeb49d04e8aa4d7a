"""A Workflow as the spec of a run: its templates are ours, steps and DAGs become graphs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from lockstep.api import duration
from lockstep.compat.argo import expressions
from lockstep.compat.argo.expressions import quote
from lockstep.compat.argo.pods import pod_step
from lockstep.compat.translation import Refused

Json = dict[str, Any]
Lookup = Callable[[str, bool], Json | None]
"""The spec of a WorkflowTemplate by its name, or of one of the cluster."""

MAIN: Final = "lockstep-main"
ROOT_ANNOTATION: Final = "lockstep.dev/artifact-root"
"""On a Workflow: where its artefacts go, as s3://BUCKET/PATH."""
STORE_ANNOTATION: Final = "lockstep.dev/artifact-secret"
"""On a Workflow: the Secret with the variables of that store."""
_WORKFLOW: Final = frozenset(
    {"activeDeadlineSeconds", "affinity", "arguments", "automountServiceAccountToken"}
    | {
        "entrypoint",
        "hooks",
        "hostAliases",
        "hostNetwork",
        "imagePullSecrets",
        "nodeSelector",
        "onExit",
    }
    | {"onExit", "parallelism", "podMetadata", "podPriorityClassName", "priority"}
    | {"schedulerName", "securityContext", "serviceAccountName", "shutdown", "suspend"}
    | {"templates"}
    | {"tolerations", "ttlStrategy", "volumes", "workflowTemplateRef", "retryStrategy"}
    | {"dnsPolicy", "dnsConfig", "workflowMetadata"}
)
_TEMPLATE: Final = frozenset(
    {"activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "container", "dag"}
    | {"failFast", "hostAliases", "initContainers", "inputs", "memoize", "metadata", "name"}
    | {"nodeSelector", "outputs", "parallelism", "priorityClassName", "resource"}
    | {"retryStrategy", "schedulerName", "script", "securityContext", "serviceAccountName"}
    | {"sidecars", "steps", "suspend", "timeout", "tolerations", "volumes"}
)
_STEP: Final = frozenset(
    {"arguments", "continueOn", "dependencies", "depends", "inline", "name", "template"}
    | {"templateRef", "when", "withItems", "withParam", "withSequence"}
)
_POD: Final[tuple[str, ...]] = (
    *("affinity", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "hostAliases"),
    *("hostNetwork", "imagePullSecrets", "nodeSelector", "schedulerName", "securityContext"),
    *("serviceAccountName", "tolerations"),
)
"""Fields of a workflow or a template that are its pods'."""


def spec(workflow: Json, lookup: Lookup = lambda _name, _cluster: None) -> Json:
    """Return the spec of a run for the spec of a *workflow*.

    Raises:
        Refused: when something in it is not honoured here; the problem names it.
    """
    return _Workflow(workflow, lookup).spec()


def parameters(given: Json | None, at: str) -> Json:
    """Return the parameters of arguments or inputs by name; those without a value are None.

    Raises:
        Refused: when one has its value from somewhere that is not served.
    """
    found: Json = {}
    for number, one in enumerate((given or {}).get("parameters") or []):
        if "valueFrom" in one:
            where = f"{at}.parameters[{number}].valueFrom"
            raise Refused(where, None, "it is not served here; give a value")
        value = one.get("value", one.get("default"))
        found[one["name"]] = value if value is None or isinstance(value, str) else _shown(value)
    return found


def _shown(value: Any) -> str:
    return json.dumps(value)


def _known(tree: Mapping[str, Any], fields: frozenset[str], at: str) -> None:
    for field in tree:
        if field not in fields:
            raise Refused(f"{at}.{field}", None, "it is not served by Lockstep; leave it out")


class _Workflow:
    def __init__(self, given: Json, lookup: Lookup) -> None:
        self.lookup = lookup
        self.given = self._whole(given)
        self.templates: Json = {}
        self.sources: Json = {}

    def _whole(self, given: Json) -> Json:
        """Return the spec laid over that of the template that it names."""
        reference = given.get("workflowTemplateRef")
        if reference is None:
            return given
        at = "spec.workflowTemplateRef"
        found = self._referred(reference, at)
        own = parameters(given.get("arguments"), "spec.arguments")
        base = parameters(found.get("arguments"), f"{at}.arguments")
        merged = [{"name": name, "value": value} for name, value in {**base, **own}.items()]
        rest = {key: value for key, value in given.items() if key != "workflowTemplateRef"}
        return {**found, **rest, "arguments": {"parameters": merged}}

    def _referred(self, reference: Json, at: str) -> Json:
        name, cluster = reference["name"], bool(reference.get("clusterScope"))
        found = self.lookup(name, cluster)
        if found is None:
            kind = "ClusterWorkflowTemplate" if cluster else "WorkflowTemplate"
            raise Refused(at, name, f"there is no {kind} of that name")
        return found

    def spec(self) -> Json:
        given = self.given
        _known(given, _WORKFLOW, "spec")
        entry = given.get("entrypoint")
        if not entry:
            raise Refused("spec.entrypoint", None, "name the template that the workflow is")
        self.sources = {one["name"]: one for one in given.get("templates") or []}
        self._template(entry, "spec.entrypoint")
        arguments = parameters(given.get("arguments"), "spec.arguments")
        missing = [name for name, value in arguments.items() if value is None]
        tasks = [self._call("main", entry, "spec.entrypoint")]
        if on_exit := _exit_of(given):
            self._template(on_exit, "spec.onExit")
            call = self._call("exit", on_exit, "spec.onExit")
            tasks.append({**call, "after": ["main"], "exit": True})
        outputs = {"result": "${{ tasks['main'].outputs }}"}
        self.templates[MAIN] = {
            "inputs": missing,
            "defaults": {n: v for n, v in arguments.items() if v is not None},
            "outputs": outputs,
            "graph": {"tasks": tasks},
        }
        return {"entry": MAIN, "templates": self.templates, **_run_fields(given)}

    def _call(self, name: str, template: str, at: str) -> Json:
        """Return the task that runs a template as the workflow itself: with its arguments."""
        inputs = self.templates[template]
        given = {
            one: f"${{{{ inputs[{quote(one)}] }}}}"
            for one in [*inputs["inputs"], *inputs["defaults"]]
            if one in parameters(self.given.get("arguments"), "spec.arguments")
        }
        return {
            "name": name,
            "template": template,
            "arguments": given,
            **self._behaviour(self.sources[template], at),
        }

    def _template(self, name: str, at: str) -> None:
        """Turn the template called *name* and all that it uses."""
        if name in self.templates:
            return
        source = self.sources.get(name)
        if source is None:
            known = ", ".join(sorted(self.sources))
            raise Refused(at, name, f"there is no such template; there are {known}")
        where = f"spec.templates[{name}]"
        _known(source, _TEMPLATE, where)
        found: Json = _inputs(source, where)
        # It may call itself.
        self.templates[name] = found
        outputs = source.get("outputs") or {}
        if "steps" in source or "dag" in source:
            found["graph"] = self._graph(source, where)
            found["outputs"] = _graph_outputs(outputs, where)
        elif "suspend" in source:
            pause = (source["suspend"] or {}).get("duration")
            found["suspend"] = (
                {"duration": _duration(pause, f"{where}.suspend.duration")} if pause else {}
            )
        elif "resource" in source:
            found["object"] = _resource(source["resource"], f"{where}.resource")
            found["outputs"] = _resource_outputs(outputs, where)
        elif "container" in source or "script" in source:
            pod: Json = {key: self.given[key] for key in _POD if key in self.given}
            pod |= {key: source[key] for key in _POD if key in source}
            if "priorityClassName" in source:
                pod["priorityClassName"] = source["priorityClassName"]
            result = self._result_is_used()
            found["pod"] = pod_step(self.given, source, pod, where, result=result)
        else:
            raise Refused(
                where, None, "it needs a container, script, steps, dag, resource, suspend"
            )

    def _result_is_used(self) -> bool:
        return ".outputs.result" in json.dumps(self.given.get("templates") or [])

    def _graph(self, source: Json, at: str) -> Json:
        tasks: list[Json] = []
        if "steps" in source:
            before: list[str] = []
            for number, group in enumerate(source["steps"]):
                made = [
                    self._step(one, f"{at}.steps[{number}][{place}]", before)
                    for place, one in enumerate(group)
                ]
                tasks += made
                before = [one["name"] for one in made]
            fail_fast = True
        else:
            dag = source["dag"]
            _known(dag, frozenset({"tasks", "failFast"}), f"{at}.dag")
            tasks = [
                self._step(one, f"{at}.dag.tasks[{number}]", [])
                for number, one in enumerate(dag.get("tasks") or [])
            ]
            fail_fast = dag.get("failFast", True)
        found: Json = {"tasks": tasks, "failFast": fail_fast}
        if source.get("parallelism"):
            found["parallelism"] = int(source["parallelism"])
        return found

    def _step(self, step: Json, at: str, before: list[str]) -> Json:
        _known(step, _STEP, at)
        name = self._called(step, at)
        found: Json = {"name": step["name"], "template": name}
        found["after"] = [*before, *(step.get("dependencies") or [])]
        if "depends" in step:
            after, needs = expressions.depends(step["depends"], f"{at}.depends")
            found |= {"after": after} if not needs else {"after": after, "needs": needs}
        if step.get("when"):
            found["when"] = expressions.when(str(step["when"]), f"{at}.when")
        goes_on = step.get("continueOn") or {}
        if goes_on.get("failed") or goes_on.get("error"):
            found["mayFail"] = True
        found |= _loop(step, at)
        found["arguments"] = _arguments(step.get("arguments") or {}, f"{at}.arguments")
        return found | self._behaviour(self.sources[name], at)

    def _called(self, step: Json, at: str) -> str:
        """Return the name of the template that a step runs, turned."""
        if "inline" in step:
            name = f"inline-{len(self.sources)}"
            self.sources[name] = {**step["inline"], "name": name}
        elif "templateRef" in step:
            reference = step["templateRef"]
            name = f"{reference['name']}.{reference['template']}"
            if name not in self.sources:
                self._borrow(reference, f"{at}.templateRef")
        else:
            name = step.get("template", "")
        self._template(name, f"{at}.template")
        return name

    def _borrow(self, reference: Json, at: str) -> None:
        """Make the templates of another object known, under names with its own before them."""
        found = self._referred(reference, at)
        templates = {one["name"]: one for one in found.get("templates") or []}
        for name, one in templates.items():
            renamed = json.loads(json.dumps(one))
            for step in _steps(renamed):
                if step.get("template") in templates:
                    step["template"] = f"{reference['name']}.{step['template']}"
            self.sources[f"{reference['name']}.{name}"] = renamed

    def _behaviour(self, source: Json, at: str) -> Json:
        """Return what a template says about each of its runs: retries, time, what is kept."""
        found: Json = {}
        strategy = source.get("retryStrategy") or self.given.get("retryStrategy")
        if strategy and ("container" in source or "script" in source or "resource" in source):
            found["retry"] = _retry(strategy, f"{at}.retryStrategy")
        limit = source.get("timeout") or source.get("activeDeadlineSeconds")
        if limit:
            found["timeout"] = _duration(limit, f"{at}.timeout")
        if memoize := source.get("memoize"):
            key = expressions.text(str(memoize["key"]), f"{at}.memoize.key")
            found["keep"] = {"key": f"{source['name']}/{key}"}
            if memoize.get("maxAge"):
                found["keep"]["longest"] = _duration(memoize["maxAge"], f"{at}.memoize.maxAge")
        return found


def _exit_of(given: Json) -> str:
    """Return the template that runs at the end of a workflow, whatever it came to.

    Raises:
        Refused: for a hook of another time, or one that runs under a condition.
    """
    hooks = given.get("hooks") or {}
    for name, hook in hooks.items():
        if name != "exit" or set(hook) != {"template"}:
            raise Refused(f"spec.hooks.{name}", None, "only exit with a template is served")
    if hooks and given.get("onExit"):
        raise Refused("spec.hooks.exit", None, "leave it or spec.onExit out")
    return str(hooks["exit"]["template"] if hooks else given.get("onExit") or "")


def _steps(template: Json) -> list[Json]:
    groups = template.get("steps") or []
    tasks = (template.get("dag") or {}).get("tasks") or []
    return [*(one for group in groups for one in group), *tasks]


def _inputs(source: Json, at: str) -> Json:
    given = source.get("inputs") or {}
    inputs: list[str] = []
    defaults: Json = {}
    for name, value in parameters(given, f"{at}.inputs").items():
        if value is None:
            inputs.append(name)
        else:
            defaults[name] = expressions.text(value, f"{at}.inputs")
    for number, one in enumerate(given.get("artifacts") or []):
        where = f"{at}.inputs.artifacts[{number}]"
        made = artifact(one, where)
        if made is not None:
            defaults[one["name"]] = made
        elif one.get("optional"):
            defaults[one["name"]] = None
        else:
            inputs.append(one["name"])
    return {"inputs": inputs, "defaults": defaults}


def artifact(one: Json, at: str) -> Any:
    """Return where an artefact comes from; None where it says nothing about that.

    Raises:
        Refused: when it comes from somewhere that is not served.
    """
    name = one["name"]
    made: Json = {"name": name, "type": "", "metadata": {}}
    if "from" in one:
        return expressions.text(one["from"], f"{at}.from")
    if "raw" in one:
        return {**made, "uri": "raw:", "raw": expressions.text(one["raw"]["data"], f"{at}.raw")}
    if "http" in one:
        return {**made, "uri": expressions.text(one["http"]["url"], f"{at}.http.url")}
    if "s3" in one:
        s3 = one["s3"]
        if not s3.get("bucket"):
            raise Refused(f"{at}.s3.bucket", None, "name the bucket")
        return {**made, "uri": expressions.text(f"s3://{s3['bucket']}/{s3['key']}", f"{at}.s3")}
    for field in one:
        if field not in ("name", "path", "mode", "optional", "archive", "recurseMode"):
            raise Refused(f"{at}.{field}", None, "artefacts come from s3, http, raw or a step")
    return None


def _arguments(given: Json, at: str) -> Json:
    found = {
        name: expressions.text(value or "", f"{at}.{name}")
        for name, value in parameters(given, at).items()
    }
    for number, one in enumerate(given.get("artifacts") or []):
        found[one["name"]] = artifact(one, f"{at}.artifacts[{number}]")
    return found


def _loop(step: Json, at: str) -> Json:
    if "withParam" in step:
        return {"loop": {"items": expressions.text(step["withParam"], f"{at}.withParam")}}
    if "withItems" in step:
        items = expressions.tree(step["withItems"], f"{at}.withItems")
        if "${{" not in json.dumps(items):
            return {"loop": {"items": json.dumps(items)}}
        raise Refused(f"{at}.withItems", None, "items must be constants; use withParam")
    if "withSequence" in step:
        return {"loop": {"items": json.dumps(_sequence(step["withSequence"], at))}}
    return {}


def _sequence(given: Json, at: str) -> list[str]:
    numbers = {key: given[key] for key in ("count", "start", "end") if key in given}
    if any("{{" in str(value) for value in numbers.values()):
        raise Refused(f"{at}.withSequence", None, "its numbers must be constants; use withParam")
    start = int(numbers.get("start", 0))
    end = int(numbers["end"]) if "end" in numbers else start + int(numbers.get("count", 0)) - 1
    most = 10_000
    if abs(end - start) > most:
        raise Refused(f"{at}.withSequence", end, f"at most {most} items")
    step = 1 if end >= start else -1
    pattern = given.get("format", "%d")
    if "count" in numbers and int(numbers["count"]) == 0:
        return []
    return [pattern % number for number in range(start, end + step, step)]


def _graph_outputs(outputs: Json, at: str) -> Json:
    found: Json = {}
    for one in outputs.get("parameters") or []:
        source = one.get("valueFrom") or {}
        where = f"{at}.outputs.parameters.{one['name']}"
        if "parameter" in source:
            found[one["name"]] = expressions.text(source["parameter"], where)
        elif "expression" in source:
            code = expressions.expression(source["expression"], where)
            found[one["name"]] = "${{ " + code + " }}"
        else:
            raise Refused(where, None, "needs valueFrom.parameter or valueFrom.expression")
    for one in outputs.get("artifacts") or []:
        where = f"{at}.outputs.artifacts.{one['name']}"
        if "from" not in one:
            raise Refused(where, None, "needs from")
        found[one["name"]] = expressions.text(one["from"], f"{where}.from")
    return found


def _resource(given: Json, at: str) -> Json:
    import yaml

    _known(
        given,
        frozenset(
            {"action", "failureCondition", "manifest", "setOwnerReference", "successCondition"}
        ),
        at,
    )
    actions = {"create": "Create", "apply": "Apply", "get": "Get", "delete": "Delete"}
    action = actions.get(given.get("action", ""))
    if action is None:
        raise Refused(f"{at}.action", given.get("action"), f"known are {', '.join(actions)}")
    try:
        tree = yaml.safe_load(expressions.text(given.get("manifest") or "", f"{at}.manifest"))
    except yaml.YAMLError as error:
        raise Refused(f"{at}.manifest", None, f"is no YAML: {error}") from None
    if not isinstance(tree, dict):
        raise Refused(f"{at}.manifest", None, "must be one object")
    found: Json = {"action": action, "object": tree}
    for ours, theirs in (("success", "successCondition"), ("failure", "failureCondition")):
        if given.get(theirs):
            found[ours] = expressions.condition(given[theirs], f"{at}.{theirs}")
    return found


def _resource_outputs(outputs: Json, at: str) -> Json:
    found: Json = {}
    for one in outputs.get("parameters") or []:
        where = f"{at}.outputs.parameters.{one['name']}"
        source = (one.get("valueFrom") or {}).get("jsonPath", "")
        path = source.strip("{}").lstrip(".")
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", path):
            raise Refused(where, source, "needs valueFrom.jsonPath, as {.status.phase}")
        found[one["name"]] = "${{ toText(object." + path + ") }}"
    return found


def _duration(given: Any, at: str) -> str:
    """Return a duration of Argo, seconds where no unit stands, in our words.

    Raises:
        Refused: when it is none, as where it is an expression.
    """
    text = f"{given}s" if str(given).isdigit() else str(given)
    try:
        duration.parse(text)
    except ValueError:
        raise Refused(at, given, "must be a duration such as 30s, not an expression") from None
    return text


def _retry(strategy: Json, at: str) -> Json:
    known = frozenset({"affinity", "backoff", "expression", "limit", "retryPolicy"})
    _known(strategy, known - {"affinity"}, at)
    policy = strategy.get("retryPolicy", "OnFailure")
    # Faults of nodes are tried again in any case.
    limit = int(strategy.get("limit", 1000)) if policy in ("Always", "OnFailure") else 0
    found: Json = {"limit": min(limit, 1000)}
    backoff = strategy.get("backoff") or {}
    if backoff.get("duration"):
        found["backoff"] = _duration(backoff["duration"], f"{at}.backoff.duration")
    if backoff.get("factor"):
        found["factor"] = int(backoff["factor"])
    if backoff.get("cap"):
        found["longest"] = _duration(backoff["cap"], f"{at}.backoff.cap")
    if strategy.get("expression"):
        found["when"] = expressions.expression(strategy["expression"], f"{at}.expression")
    return found


def _run_fields(given: Json) -> Json:
    """Return what a workflow says about its run as a whole."""
    found: Json = {}
    if given.get("parallelism"):
        found["parallelism"] = int(given["parallelism"])
    if given.get("activeDeadlineSeconds"):
        found["timeout"] = _duration(given["activeDeadlineSeconds"], "spec.activeDeadlineSeconds")
    if given.get("podPriorityClassName"):
        found["priorityClassName"] = given["podPriorityClassName"]
    if given.get("serviceAccountName"):
        found["serviceAccountName"] = given["serviceAccountName"]
    if given.get("shutdown"):
        found["desired"] = "Stopped"
    elif given.get("suspend"):
        found["desired"] = "Suspended"
    return found
