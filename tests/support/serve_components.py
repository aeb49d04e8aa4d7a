"""Decisions on a service, run until its revisions are there."""

from __future__ import annotations

from dataclasses import replace

from lockstep.api.core import ControllerRevision
from lockstep.api.meta import ObjectMeta
from lockstep.api.wire import convert
from lockstep.compat.kserve.problem import Problem
from lockstep.runtime.actions import Create, Decision
from lockstep.serve.core.decide import decide, translate
from lockstep.serve.core.service_state import Seen

META = ObjectMeta(name="svc", namespace="n", uid="u")


def with_revisions(seen: Seen) -> Seen:
    """Return *seen* once every revision that it needs was made."""
    while True:
        decision = run(seen)
        made = [one for one in decision.actions if isinstance(one, Create)]
        if not made or made[0].resource.kind != "ControllerRevision":
            return seen
        known = [*seen.revisions, convert(made[0].body, ControllerRevision)]
        seen = replace(seen, revisions=known)


def run(seen: Seen, wanted: int = 1, transformers: int = 1) -> Decision:
    component = translate(seen)
    assert not isinstance(component, Problem), component
    return decide(seen, component, wanted, 0.0, transformers=transformers)
