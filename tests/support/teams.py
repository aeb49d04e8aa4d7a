"""Teams on a server: their controller with its own rights, and users who act with theirs."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually, stretched

from lockstep.api.team import TEAMS, Team
from lockstep.compat.kubeflow.profile import PROFILES
from lockstep.insight.main import add_history
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.notebooks.kind_ownership import KindOwnership
from lockstep.runtime.manager import Manager
from lockstep.tenants.main import add_profiles, add_teams

Json = dict[str, Any]


@asynccontextmanager
async def controlled(server: ApiServer, records: Path | None = None) -> AsyncIterator[None]:
    """Run the controller of teams, and with *records* the recorder, each with its own rights."""
    folder = server.data / "kubeconfigs"
    async with Client(ClusterConfig.load(folder / "controllers.kubeconfig")) as client:
        manager = Manager(client, name="controllers", leader_elect=False)
        add_teams(manager)
        add_profiles(manager, KindOwnership(client, PROFILES).ours)
        running = [asyncio.create_task(manager.run(lambda _: None))]
        try:
            if records is None:
                yield
            else:
                own = folder / "recorder.kubeconfig"
                found = own if own.exists() else folder / "controllers.kubeconfig"
                async with Client(ClusterConfig.load(found)) as recorder:
                    keeping = Manager(recorder, name="recorder", leader_elect=False)
                    add_history(keeping, records)
                    running.append(asyncio.create_task(keeping.run(lambda _: None)))
                    yield
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


async def ready(client: Client, name: str) -> Team:
    async def look() -> Team | None:
        team = await client.get(TEAMS, name)
        if any(c.observed_generation != team.metadata.generation for c in team.status.conditions):
            return None
        return (
            team
            if any(c.type == "Ready" and c.status == "True" for c in team.status.conditions)
            else None
        )

    return await eventually(look, what=f"team {name} is ready")


async def may(client: Client, user: str, verb: str, what: str, namespace: str) -> bool:
    group, _, resource = what.rpartition("/")
    asked = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    body = {"spec": {"user": user, "resourceAttributes": asked}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = await client.request("POST", path, body=json.dumps(body).encode())
    return bool(json.loads(answer)["status"]["allowed"])


def kubeconfig_of(server: ApiServer, user: str, namespace: str, folder: Path) -> Path:
    """Write a kubeconfig by which *user* acts from any machine; an empty one is administrator."""
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = user
    config["contexts"][0]["context"]["namespace"] = namespace
    target = folder / f"{user or 'admin'}.kubeconfig"
    target.write_text(yaml.safe_dump(config))
    return target


async def command(kubeconfig: Path, *arguments: str) -> tuple[int, str]:
    """Run a command of `lockstep` with a kubeconfig alone; return its exit status and words."""
    home = kubeconfig.parent / "home"
    home.mkdir(exist_ok=True)

    def call() -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "lockstep", *arguments, "--kubeconfig", str(kubeconfig)],
            env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
            timeout=stretched(60),
        )
        return done.returncode, done.stdout + done.stderr

    return await asyncio.to_thread(call)
