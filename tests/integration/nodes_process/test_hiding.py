"""What pods do not get to see, and as whom they do not run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.process_node import ProcessNode, needs_mounts, phase, pod, read_log, status
from tests.support.waiting import eventually

from lockstep.kube.client import Client
from lockstep.nodes.process.spec import POD_RUNS


async def test_pods_see_the_data_directory_empty(client: Client, node: ProcessNode) -> None:
    needs_mounts()
    secret = node.data / "secret.key"
    secret.write_text("secret")
    await client.create(POD_RUNS, pod("nosy", f"ls -A {node.data}; cat {secret} && exit 1; exit 0"))
    await phase(client, "nosy", "Succeeded")
    assert "secret\n" not in read_log(node, "nosy")
    assert secret.read_text() == "secret"


async def test_a_volume_of_a_parent_does_not_show_the_data(
    client: Client, node: ProcessNode
) -> None:
    needs_mounts()
    (node.data / "secret.key").write_text("secret")
    parent, name = node.data.parent, node.data.name
    body = pod("roundabout", f"ls -A /upper/{name}; test ! -e /upper/{name}/secret.key")
    mount(body, parent, "/upper")
    await client.create(POD_RUNS, body)
    await phase(client, "roundabout", "Succeeded")


async def test_a_volume_within_the_data_is_refused(client: Client, node: ProcessNode) -> None:
    needs_mounts()
    body = pod("burglar", "exit 0")
    mount(body, node.data, "/upper")
    await client.create(POD_RUNS, body)
    await waits_because(client, "burglar", "pods may not see")


@pytest.mark.parametrize("user", [0, None], ids=["root by name", "root by default"])
async def test_run_as_non_root_is_enforced(client: Client, user: int | None) -> None:
    if os.geteuid() != 0 and user is None:
        pytest.skip("the node does not run as root, so pods do not by default")
    name = f"non-root-{user}".lower()
    body = pod(name, "exit 0")
    context = {"runAsNonRoot": True} | ({} if user is None else {"runAsUser": user})
    body["spec"]["containers"][0]["securityContext"] = context
    await client.create(POD_RUNS, body)
    await waits_because(client, name, "runAsNonRoot")


def mount(body: dict[str, Any], source: Path, target: str) -> None:
    body["spec"]["volumes"] = [{"name": "host", "hostPath": {"path": str(source)}}]
    body["spec"]["containers"][0]["volumeMounts"] = [{"name": "host", "mountPath": target}]


async def waits_because(client: Client, name: str, words: str) -> None:
    async def told() -> bool:
        for one in (await status(client, name)).get("containerStatuses", []):
            waiting = one["state"].get("waiting", {})
            if words in waiting.get("message", ""):
                return True
        return False

    await eventually(told)
