"""What a workflow says about its run as a whole: its end, its locks, its pods, its claims."""

from __future__ import annotations

from typing import Final

from lockstep.api.wire import Json
from lockstep.compat.argo import expressions
from lockstep.compat.argo.fields import number, only, seconds
from lockstep.compat.translation import Refused

_SWEEPS: Final = {
    "OnPodCompletion": "OnPodCompletion",
    "OnPodSuccess": "OnPodSuccess",
    "OnWorkflowCompletion": "OnRunCompletion",
    "OnWorkflowSuccess": "OnRunSuccess",
}


def run_fields(given: Json) -> Json:
    """Return what a workflow says about its run as a whole."""
    found: Json = {}
    if given.get("parallelism"):
        found["parallelism"] = number(given["parallelism"], "spec.parallelism")
    if given.get("activeDeadlineSeconds"):
        found["timeout"] = seconds(given["activeDeadlineSeconds"], "spec.activeDeadlineSeconds")
    if given.get("podPriorityClassName"):
        found["priorityClassName"] = given["podPriorityClassName"]
    if given.get("serviceAccountName"):
        found["serviceAccountName"] = given["serviceAccountName"]
    if given.get("shutdown"):
        found["desired"] = "Stopped"
    elif given.get("suspend"):
        found["desired"] = "Suspended"
    if given.get("volumeClaimTemplates"):
        found["claims"] = given["volumeClaimTemplates"]
    if sweep := _sweep(given.get("podGC") or {}):
        found["sweep"] = sweep
    return found


def _sweep(given: Json) -> Json | None:
    at = "spec.podGC"
    only(given, frozenset({"deleteDelayDuration", "labelSelector", "strategy"}), at)
    strategy = given.get("strategy", "")
    if not strategy:
        return None
    if strategy not in _SWEEPS:
        raise Refused(f"{at}.strategy", strategy, f"known are {', '.join(_SWEEPS)}")
    selector = given.get("labelSelector") or {}
    only(selector, frozenset({"matchLabels"}), f"{at}.labelSelector")
    found: Json = {"strategy": _SWEEPS[strategy], "labels": selector.get("matchLabels") or {}}
    if "deleteDelayDuration" in given:
        found["delay"] = seconds(given["deleteDelayDuration"], f"{at}.deleteDelayDuration")
    return found


def claim_volumes(given: Json) -> list[Json]:
    """Return the volumes that a workflow's claim templates are to its pods."""
    names = [one["metadata"]["name"] for one in given.get("volumeClaimTemplates") or []]
    return [
        {"name": name, "persistentVolumeClaim": {"claimName": "{{workflow.name}}-" + name}}
        for name in names
    ]


def locks(source: Json, at: str) -> list[Json]:
    """Return what a workflow or a template holds while it runs: mutexes and semaphores.

    Raises:
        Refused: when it is kept in a database or is another namespace's.
    """
    given = source.get("synchronization") or {}
    only(given, frozenset({"mutex", "mutexes", "semaphore", "semaphores"}), at)
    found: list[Json] = []
    mutexes = [*(given.get("mutexes") or []), *([given["mutex"]] if "mutex" in given else [])]
    for one in mutexes:
        only(one, frozenset({"name"}), f"{at}.mutexes")
        found.append({"name": expressions.text(f"mutex/{one['name']}", f"{at}.mutexes.name")})
    semaphores = [
        *(given.get("semaphores") or []),
        *([given["semaphore"]] if "semaphore" in given else []),
    ]
    for one in semaphores:
        only(one, frozenset({"configMapKeyRef"}), f"{at}.semaphores")
        reference = one.get("configMapKeyRef") or {}
        if not reference.get("name") or not reference.get("key"):
            raise Refused(f"{at}.semaphores.configMapKeyRef", None, "give name and key")
        place = f"{reference['name']}/{reference['key']}"
        if "{{" in place:
            raise Refused(f"{at}.semaphores.configMapKeyRef", place, "must be constant")
        found.append({"name": f"semaphore/{place}", "limitFrom": place})
    return found


def exit_of(given: Json) -> str:
    """Return the template that runs at the end of a workflow, failed or not.

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


def exports(source: Json) -> dict[str, str]:
    """Return the outputs of a template that the whole workflow knows, by their global names."""
    outputs = source.get("outputs") or {}
    found = {one["name"]: one.get("globalName") for one in outputs.get("parameters") or []}
    for one in outputs.get("artifacts") or []:
        if one.get("globalName"):
            found[expressions.kept(one["name"])] = expressions.kept(one["globalName"])
    return {name: known for name, known in found.items() if known}
