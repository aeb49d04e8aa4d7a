"""Clones of a job, each with one thing altered, and what they prove. Pure."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from lockstep.api import names
from lockstep.api.wire import Json
from lockstep.insight.advice.causes import CAUSES
from lockstep.insight.advice.judge import Verdict

CONTROL: Final = "control"
"""The clone in which nothing is altered: what the others are held against."""
VARIABLE: Final = "LOCKSTEP_EXPERIMENT"
CLONE_LABEL: Final = "lockstep.dev/clone-of"
PRIORITY_CLASS: Final = "lockstep-experiments"
PROVED: Final = 0.5
"""Part of the predicted gain that a clone must show."""
_LONGEST_NAME: Final = 63
_KEPT: Final = (
    *("framework", "queue", "parallelism", "topology", "alignment", "strategy", "launcher"),
)


def change_of(verdict: Verdict) -> str:
    """Return what a clone has altered to prove *verdict*; nothing where no clone can."""
    return CAUSES[verdict.cause].change


def clone(job: Json, change: str, number: int, steps: int) -> Json:
    """Return the job *job* once more, for *steps* steps, with one thing altered.

    It takes no checkpoints into the job's directory, is not restarted, and its volumes are
    read-only but for those that are its own (``emptyDir``).
    """
    spec: Json = {k: copy.deepcopy(v) for k, v in job["spec"].items() if k in _KEPT}
    spec["priorityClassName"] = PRIORITY_CLASS
    spec["recovery"] = {"maxRestarts": 0}
    plan = {"change": change, "value": (2 if change == "batch" else number), "steps": steps}
    spec["roles"] = [_role(role, plan) for role in copy.deepcopy(job["spec"]["roles"])]
    if change == "one_rank":
        spec["roles"] = [{**spec["roles"][0], "replicas": 1, "processesPerNode": 1}]
        spec.pop("parallelism", None)
    name = job["metadata"]["name"]
    end = f"-try-{change.replace('_', '-')}"
    owner = {
        "apiVersion": names.API_VERSION,
        "kind": "TrainingJob",
        "name": name,
        "uid": job["metadata"].get("uid", ""),
    }
    metadata = {
        "name": name[: _LONGEST_NAME - len(end)] + end,
        "namespace": job["metadata"].get("namespace", "default"),
        "labels": {CLONE_LABEL: name},
        # It goes with the job, also when its maker was killed.
        "ownerReferences": [owner],
    }
    return {"metadata": metadata, "spec": spec}


def _role(role: Json, plan: Json) -> Json:
    role = {k: v for k, v in role.items() if k not in ("min", "max")}
    pod = role["template"]["spec"]
    main = pod["containers"][0]
    main["env"] = [*main.get("env", []), {"name": VARIABLE, "value": json.dumps(plan)}]
    own = {one["name"] for one in pod.get("volumes", []) if "emptyDir" in one}
    for container in pod["containers"]:
        for mount in container.get("volumeMounts", []):
            mount["readOnly"] = mount["name"] not in own or mount.get("readOnly", False)
    if plan["change"] == "cpu":
        resources = main.setdefault("resources", {})
        resources["limits"] = {**resources.get("limits", {}), "cpu": str(plan["value"])}
    return role


def weighed(verdict: Verdict, control: float, altered: float) -> Verdict:
    """Return *verdict* with what clones showed: seconds of a step without and with the change.

    A larger batch takes longer: its step counts for two.
    """
    if control <= 0 or altered <= 0:
        return verdict
    if change_of(verdict) == "batch":
        altered /= 2
    gain = 1 - altered / control
    proved = gain >= PROVED * verdict.gain
    confidence = 0.95 if proved else min(verdict.confidence, 0.3)
    return replace(verdict, measured=round(gain, 4), proved=proved, confidence=confidence)


def worth_trying(verdicts: Sequence[Verdict], most: int) -> list[Verdict]:
    """Return the verdicts that clones can prove, each change once, *most* of them."""
    found: dict[str, Verdict] = {}
    for one in verdicts:
        if change_of(one):
            found.setdefault(change_of(one), one)
    return list(found.values())[:most]
