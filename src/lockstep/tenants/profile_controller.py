"""The shell around Kubeflow's Profile: a Team of its name, and its status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from lockstep.api.meta import ObjectMeta, owned_by
from lockstep.api.team import TEAMS, Team
from lockstep.compat.kubeflow.profile import PROFILES, Profile, status, team
from lockstep.compat.translation import Refused
from lockstep.kube.client import Client
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.runtime.actions import Change, Create
from lockstep.runtime.controller import Key
from lockstep.runtime.execution import execute
from lockstep.runtime.refusals import RETRY_REFUSED
from lockstep.runtime.status import write_status


@dataclass
class ProfileController:
    """Keeps one Team for each Profile that is ours to serve."""

    client: Client
    profiles: Informer[Profile]
    teams: Informer[Team]
    recorder: Recorder
    ours: Callable[[ObjectMeta], Awaitable[bool]]

    async def reconcile(self, key: Key) -> float | None:
        """Bring the team of the profile at *key* to what the profile says.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        profile = self.profiles.get(*key)
        if profile is None or profile.metadata.deletion_timestamp is not None:
            return None
        if not await self.ours(profile.metadata):
            return None
        made = self.teams.get(*key)
        problem = await self._bring(profile, made)
        told = status(profile, problem)
        if await write_status(self.client, PROFILES, profile, told) is not None and problem:
            self.recorder.event(profile, "Warning", "NotReady", problem[:1000])
        return RETRY_REFUSED if problem else None

    async def _bring(self, profile: Profile, made: Team | None) -> str:
        """Make or mend the team; return what is wrong, empty while nothing is."""
        about = profile.metadata
        try:
            wanted = team(profile)
        except Refused as refused:
            return str(refused.problem)
        if made is not None and not owned_by(made, profile):
            return f"metadata.name: team {about.name} is there already; delete it, or rename"
        action = Create(TEAMS, wanted) if made is None else _mended(made, wanted["spec"])
        refusal = await execute(self.client, action) if action is not None else None
        if made is None or refusal is not None:
            return str(refusal or "")
        bad = next((c for c in made.status.conditions if c.status == "False"), None)
        return bad.message if bad else ""


def _mended(made: Team, spec: dict[str, Any]) -> Change | None:
    """Return what brings the team to *spec*; None where it is there."""
    there = {
        "members": [
            {"kind": one.kind, "name": one.name, "role": one.role} for one in made.spec.members
        ],
        "quota": made.spec.quota,
    }
    if there == spec:
        return None
    # A member or an amount that the profile no longer has must go, so nothing is merged.
    gone = {key: None for key in there["quota"] if key not in spec["quota"]}
    return Change(TEAMS, made.metadata.name, {"spec": {**spec, "quota": {**spec["quota"], **gone}}})
