"""The shell around Kubeflow's Profile: a Team of its name, and its status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from lockstep.api.merge import difference
from lockstep.api.meta import ObjectMeta
from lockstep.api.team import TEAMS, Team
from lockstep.compat.kubeflow.profile import PROFILES, Profile, status, team
from lockstep.compat.translation import Refused
from lockstep.kube.client import Client
from lockstep.kube.controller import Key
from lockstep.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer

_REFUSALS = frozenset({400, 422})


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
        try:
            problem = await self._bring(profile, made)
        except (AlreadyExists, Conflict, NotFound):
            return 0.1
        await self._write_status(profile, problem)
        return None

    async def _bring(self, profile: Profile, made: Team | None) -> str:
        """Make or mend the team; return what is wrong, empty while nothing is."""
        about = profile.metadata
        try:
            wanted = team(profile)
            if made is None:
                await self.client.create(TEAMS, wanted)
                return ""
            if not any(one.uid == about.uid for one in made.metadata.owner_references):
                return f"metadata.name: team {about.name} is there already; delete it, or rename"
            await self._mend(made, wanted["spec"])
        except Refused as refused:
            return str(refused.problem)
        except ApiError as error:
            if error.status not in _REFUSALS:
                raise
            return str(error)
        bad = next((c for c in made.status.conditions if c.status == "False"), None)
        return bad.message if bad else ""

    async def _mend(self, made: Team, spec: dict[str, Any]) -> None:
        there = {
            "members": [
                {"kind": one.kind, "name": one.name, "role": one.role} for one in made.spec.members
            ],
            "quota": made.spec.quota,
        }
        if there != spec:
            # A member or an amount that the profile no longer has must go, so nothing is merged.
            gone = {key: None for key in there["quota"] if key not in spec["quota"]}
            change = {**spec, "quota": {**spec["quota"], **gone}}
            await self.client.patch(TEAMS, made.metadata.name, {"spec": change})

    async def _write_status(self, profile: Profile, problem: str) -> None:
        patch = difference(profile.status, status(profile, problem))
        if not patch:
            return
        if problem:
            self.recorder.event(profile, "Warning", "NotReady", problem[:1000])
        await self.client.patch(
            PROFILES, profile.metadata.name, {"status": patch}, subresource="status"
        )
