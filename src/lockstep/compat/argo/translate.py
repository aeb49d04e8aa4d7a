"""A Workflow as the spec of a run: its templates are ours, steps and DAGs become graphs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.compat.argo import conditions, expressions, runs, tasks
from lockstep.compat.argo.expressions import quote
from lockstep.compat.argo.fields import (
    arguments,
    artifact,
    inputs,
    number,
    only,
    parameters,
    seconds,
)
from lockstep.compat.argo.pods import pod_step
from lockstep.compat.argo.resources import graph_outputs, resource, resource_outputs
from lockstep.compat.translation import Refused

Lookup = Callable[[str, bool], Json | None]
"""The spec of a WorkflowTemplate by its name, or of one of the cluster."""

MAIN: Final = "lockstep-main"
ROOT_ANNOTATION: Final = "lockstep.dev/artifact-root"
"""On a Workflow: where its artefacts go, as s3://BUCKET/PATH."""
STORE_ANNOTATION: Final = "lockstep.dev/artifact-secret"
"""On a Workflow: the Secret with the variables of that store."""
SCHEDULED: Final = "workflows.argoproj.io/scheduled-time"
"""On a Workflow that a CronWorkflow made: when it was due."""
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
    | {"dnsPolicy", "dnsConfig", "podGC", "podResources", "podSpecPatch", "resourceClaims"}
    | {"synchronization", "templateDefaults", "volumeClaimTemplates", "workflowMetadata"}
)
_TEMPLATE: Final = frozenset(
    {"activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "container", "dag"}
    | {"failFast", "hostAliases", "initContainers", "inputs", "memoize", "metadata", "name"}
    | {"nodeSelector", "outputs", "parallelism", "priorityClassName", "resource"}
    | {"annotations", "containerSet", "daemon", "podResources", "podSpecPatch", "resourceClaims"}
    | {"synchronization"}
    | {"retryStrategy", "schedulerName", "script", "securityContext", "serviceAccountName"}
    | {"sidecars", "steps", "suspend", "timeout", "tolerations", "volumes"}
)
_STEP: Final = frozenset(
    {"arguments", "continueOn", "dependencies", "depends", "hooks", "inline", "name", "onExit"}
    | {"template"}
    | {"templateRef", "when", "withItems", "withParam", "withSequence"}
)
_POD: Final[tuple[str, ...]] = (
    *("affinity", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "hostAliases"),
    *("hostNetwork", "imagePullSecrets", "nodeSelector", "schedulerName", "securityContext"),
    *("resourceClaims", "serviceAccountName", "tolerations"),
)
"""Fields of a workflow or a template that are its pods'."""


def spec(
    workflow: Json,
    lookup: Lookup = lambda _name, _cluster: None,
    about: Mapping[str, Any] | None = None,
) -> Json:
    """Return the spec of a run for the spec of a *workflow*, whose metadata is *about*.

    Raises:
        Refused: when something in it is not honoured here; the problem names it.
    """
    return _Workflow(workflow, lookup, about or {}).spec()


def _facts(given: Json, about: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of a workflow that are known before it runs."""
    found = {"workflow.mainEntrypoint": str(given.get("entrypoint", ""))}
    found["workflow.priority"] = str(given.get("priority", 0))
    for field in ("labels", "annotations"):
        held = about.get(field) or {}
        found |= {f"workflow.{field}.{name}": value for name, value in held.items()}
        found[f"workflow.{field}"] = found[f"workflow.{field}.json"] = json.dumps(held)
    if SCHEDULED in (about.get("annotations") or {}):
        found["workflow.scheduledTime"] = about["annotations"][SCHEDULED]
    return found


class _Workflow:
    def __init__(self, given: Json, lookup: Lookup, about: Mapping[str, Any]) -> None:
        self.lookup = lookup
        whole = self._whole(given)
        self.facts = _facts(whole, about)
        self.given = expressions.fill(whole, self.facts)
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
        merged: Json = {}
        merged["parameters"] = [
            {"name": name, "value": value} for name, value in {**base, **own}.items()
        ]
        named = [*((found.get("arguments") or {}).get("artifacts") or [])]
        named += (given.get("arguments") or {}).get("artifacts") or []
        merged["artifacts"] = [*{one["name"]: one for one in named}.values()]
        rest = {key: value for key, value in given.items() if key != "workflowTemplateRef"}
        return {**found, **rest, "arguments": merged}

    def _referred(self, reference: Json, at: str) -> Json:
        name, cluster = reference["name"], bool(reference.get("clusterScope"))
        found = self.lookup(name, cluster)
        if found is None:
            kind = "ClusterWorkflowTemplate" if cluster else "WorkflowTemplate"
            raise Refused(at, name, f"there is no {kind} of that name")
        return found

    def spec(self) -> Json:
        given = self.given
        only(given, _WORKFLOW, "spec")
        entry = given.get("entrypoint")
        if not entry:
            raise Refused("spec.entrypoint", None, "name the template that the workflow is")
        self._adopt({one["name"]: one for one in given.get("templates") or []})
        self._template(entry, "spec.entrypoint")
        values = self._values()
        missing = [name for name, value in values.items() if value is None]
        tasks = [self._call("main", entry, "spec.entrypoint")]
        if on_exit := runs.exit_of(given):
            self._template(on_exit, "spec.onExit")
            call = self._call("exit", on_exit, "spec.onExit")
            tasks.append({**call, "after": ["main"], "exit": True})
        outputs = {"result": "${{ tasks['main'].outputs }}"}
        self.templates[MAIN] = {
            "inputs": missing,
            "defaults": {n: v for n, v in values.items() if v is not None},
            "outputs": outputs,
            "locks": runs.locks(given, "spec.synchronization"),
            "graph": {"tasks": tasks},
        }
        return {"entry": MAIN, "templates": self.templates, **runs.run_fields(given)}

    def _values(self) -> Json:
        """Return the workflow's own arguments: parameters as they are, artefacts by address."""
        given = self.given.get("arguments")
        values = {
            name: value if value is None else expressions.literal(value)
            for name, value in parameters(given, "spec.arguments").items()
        }
        for place, one in enumerate((given or {}).get("artifacts") or []):
            values[one["name"]] = artifact(one, f"spec.arguments.artifacts[{place}]")
        return values

    def _adopt(self, templates: Mapping[str, Json]) -> None:
        """Make templates known, each laid over the defaults of all."""
        base = self.given.get("templateDefaults") or {}
        for name, one in templates.items():
            made = {**base, **one}
            if "podResources" in self.given:
                made.setdefault("podResources", self.given["podResources"])
            places = {
                f"inputs.artifacts.{each['name']}.path": each["path"]
                for each in (made.get("inputs") or {}).get("artifacts") or []
                if each.get("path")
            }
            self.sources[name] = expressions.fill(made, places)

    def _call(self, name: str, template: str, at: str) -> Json:
        """Return the task that runs a template as the workflow itself: with its arguments."""
        called = self.templates[template]
        values = self._values()
        given = {
            one: f"${{{{ inputs[{quote(one)}] }}}}"
            for one in [*called["inputs"], *called["defaults"]]
            if one in values
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
        only(source, _TEMPLATE, where)
        found: Json = inputs(source, where)
        if exports := runs.exports(source):
            found["exports"] = exports
        if locks := runs.locks(source, f"{where}.synchronization"):
            found["locks"] = locks
        # It may call itself.
        self.templates[name] = found
        outputs = source.get("outputs") or {}
        if "steps" in source or "dag" in source:
            found["graph"] = self._graph(source, where)
            found["outputs"] = graph_outputs(outputs, where)
            if "retryStrategy" in source and "retryStrategy" not in self._defaults():
                raise Refused(f"{where}.retryStrategy", None, "give it to the templates it runs")
        elif "suspend" in source:
            pause = (source["suspend"] or {}).get("duration")
            found["suspend"] = (
                {"duration": seconds(pause, f"{where}.suspend.duration")} if pause else {}
            )
        elif "resource" in source:
            found["object"] = resource(source["resource"], f"{where}.resource")
            found["outputs"] = resource_outputs(outputs, where)
        elif any(kind in source for kind in ("container", "containerSet", "script")):
            found["pod"] = self._pod(source, where)
        else:
            raise Refused(
                where,
                None,
                "it needs one of container, script, containerSet, steps, dag, resource, suspend",
            )

    def _pod(self, source: Json, where: str) -> Json:
        """Return the step of a template that is a pod."""
        pod: Json = {key: self.given[key] for key in _POD if key in self.given}
        pod |= {key: source[key] for key in _POD if key in source}
        if "priorityClassName" in source:
            pod["priorityClassName"] = source["priorityClassName"]
        return pod_step(self.given, source, pod, where, result=self._result_is_used())

    def _result_is_used(self) -> bool:
        return ".outputs.result" in json.dumps(self.given.get("templates") or [])

    def _defaults(self) -> Json:
        return self.given.get("templateDefaults") or {}

    def _graph(self, source: Json, at: str) -> Json:
        made: list[Json] = []
        if "steps" in source:
            before: list[str] = []
            for line, group in enumerate(source["steps"]):
                row: list[Json] = []
                for place, one in enumerate(group):
                    row += self._step(one, f"{at}.steps[{line}][{place}]", before)
                made += row
                before = [one["name"] for one in row]
            fail_fast = True
        else:
            dag = source["dag"]
            only(dag, frozenset({"tasks", "failFast", "target"}), f"{at}.dag")
            for line, one in enumerate(tasks.targets(self._aimed(dag), f"{at}.dag")):
                made += self._step(one, f"{at}.dag.tasks[{line}]", [])
            fail_fast = dag.get("failFast", True)
        found: Json = {"tasks": made, "failFast": fail_fast}
        if source.get("parallelism"):
            most = found["parallelism"] = number(source["parallelism"], f"{at}.parallelism")
            for task in made:
                if "loop" in task:
                    task["loop"]["parallelism"] = most
        return found

    def _aimed(self, dag: Json) -> Json:
        """Return *dag* with the arguments that its target names in their places."""
        values = {f"workflow.parameters.{n}": v for n, v in self._values().items() if v}
        return {**dag, "target": expressions.fill(dag.get("target", ""), values)}

    def _step(self, step: Json, at: str, before: list[str]) -> Iterator[Json]:
        """Return the task of a step, and those of its hooks."""
        only(step, _STEP, at)
        found = self._task(step, at)
        found["after"] = [*before, *(step.get("dependencies") or [])]
        if "depends" in step:
            after, needs = conditions.depends(step["depends"], f"{at}.depends")
            found |= {"after": after} if not needs else {"after": after, "needs": needs}
        if step.get("when"):
            found["when"] = expressions.when(str(step["when"]), f"{at}.when")
        goes_on = step.get("continueOn") or {}
        if goes_on.get("failed") or goes_on.get("error"):
            found["mayFail"] = True
        found |= tasks.loop(step, at)
        yield found
        for hook in tasks.hooks(step, at):
            task = self._task(hook, f"{at}.hooks")
            yield {**task, "after": [step["name"]], "exit": True, "when": hook["ours"]}

    def _task(self, step: Json, at: str) -> Json:
        """Return what runs a template: with which arguments, tried how often, for how long."""
        name = self._called(step, at)
        called = self.templates[name]
        defaults = called["defaults"]
        given = arguments(step.get("arguments") or {}, f"{at}.arguments", defaults)
        # As to Argo, what a template does not ask for is nothing to it.
        taken = {
            key: value for key, value in given.items() if key in {*called["inputs"], *defaults}
        }
        found: Json = {"name": step["name"], "template": name, "arguments": taken}
        return found | self._behaviour(self.sources[name], at)

    def _called(self, step: Json, at: str) -> str:
        """Return the name of the template that a step runs, turned."""
        if "inline" in step:
            name = f"inline-{len(self.sources)}"
            self._adopt({name: {**step["inline"], "name": name}})
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
            renamed = json.loads(json.dumps(expressions.fill(one, self.facts)))
            for step in tasks.steps_of(renamed):
                if step.get("template") in templates:
                    step["template"] = f"{reference['name']}.{step['template']}"
            self._adopt({f"{reference['name']}.{name}": renamed})

    def _behaviour(self, source: Json, at: str) -> Json:
        """Return what a template says about each of its runs: retries, time, what is kept."""
        found: Json = {}
        strategy = source.get("retryStrategy", self.given.get("retryStrategy"))
        kinds = ("container", "containerSet", "script", "resource")
        if strategy is not None and any(kind in source for kind in kinds):
            found["retry"] = tasks.retry(strategy, f"{at}.retryStrategy")
        limit = source.get("timeout") or source.get("activeDeadlineSeconds")
        if limit:
            found["timeout"] = _limit(limit, f"{at}.timeout")
        if memoize := source.get("memoize"):
            key = expressions.text(str(memoize["key"]), f"{at}.memoize.key")
            found["keep"] = {"key": f"{source['name']}/{key}"}
            if memoize.get("maxAge"):
                found["keep"]["longest"] = seconds(memoize["maxAge"], f"{at}.memoize.maxAge")
        return found


def _limit(given: Any, at: str) -> str:
    """Return how long a step may run, which an input may say."""
    text = str(given).strip()
    if not re.fullmatch(r"\{\{inputs\.parameters\.[^{}]+\}\}", text):
        return seconds(given, at)
    return expressions.text(text, at)
