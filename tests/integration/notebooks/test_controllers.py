"""Notebooks and kernels on both servers, with the rights that their controllers are given."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.kernels import played
from tests.support.kube_cluster import KubeCluster
from tests.support.scheduler import PartProcess
from tests.support.waiting import eventually

from lockstep.api.core import EVENTS, NAMESPACES, PODS, SECRETS, SERVICES
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.notebooks import ENVIRONMENTS, KERNELS, KernelStatus
from lockstep.compat import dialects
from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.jupyter import kinds as jupyter
from lockstep.compat.kubeflow.kinds import WORKSPACE, WORKSPACE_KIND
from lockstep.compat.kubeflow.notebook import NOTEBOOKS, STOPPED
from lockstep.compat.kubeflow.tensorboard import TENSORBOARDS
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_foreign
from lockstep.kube.errors import AlreadyExists, NotFound

WITHIN = 60.0


@pytest.fixture(scope="module", params=["embedded", "kubernetes"])
def server(request: pytest.FixtureRequest) -> ApiServer:
    """The embedded server and a real control plane in turn."""
    if request.param == "embedded":
        embedded: ApiServer = request.getfixturevalue("shared_server")
        return embedded
    real: KubeCluster = request.getfixturevalue("running_cluster")
    real.empty()
    return real


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[Client]:
    """A client, while the controllers run with the rights that they are given."""
    async with server.client() as found:
        await ensure_foreign(found, dialects.manifests(["kubeflow", "jupyter"]))
        with contextlib.suppress(AlreadyExists):
            await found.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
        config = server.data / "kubeconfigs" / "controllers.kubeconfig"
        controllers = PartProcess(config, part="controllers").start()
        yield found
        for resource, name in ((NOTEBOOKS, "ana"), (KERNELS, "session")):
            with contextlib.suppress(NotFound):
                await found.delete(resource, name, "default", propagation="Background")
        controllers.kill()


async def test_notebook_has_what_kubeflow_gives_it(client: Client) -> None:
    container = {"name": "ana", "image": "none", "command": ["jupyter", "lab"]}
    body = {
        "metadata": {"name": "ana", "labels": {"lockstep.dev/queue": "research"}},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }

    async def created() -> bool:
        with contextlib.suppress(NotFound):
            await client.create(NOTEBOOKS, body, "default")
            return True
        return False

    await eventually(created, WITHIN, "the kind is served")

    async def there() -> bool:
        with contextlib.suppress(NotFound):
            await client.get(PODS, "ana-0", "default")
            return True
        return False

    await eventually(there, WITHIN, "the notebook's pod")
    pod = await client.get(PODS, "ana-0", "default")
    labels = pod.metadata.labels
    assert (labels["notebook-name"], labels["statefulset"]) == ("ana", "ana")
    assert labels["lockstep.dev/queue"] == "research"
    assert pod.spec.scheduler_name == "lockstep"
    service = await client.get(SERVICES, "ana", "default")
    assert [one.port for one in service.spec.ports] == [80]
    assert set((await client.get(SECRETS, "ana-notebook", "default")).data) == {
        "server",
        "page",
    }
    status = {"status": {"phase": "Running", "podIP": "127.0.0.1"}}
    await client.patch(PODS, "ana-0", status, "default", subresource="status")

    await client.patch(NOTEBOOKS, "ana", {"metadata": {"annotations": {STOPPED: "now"}}}, "default")

    async def gone() -> bool:
        return not await there()

    await eventually(gone, WITHIN, "the stopped notebook's pod goes")
    await client.patch(NOTEBOOKS, "ana", {"metadata": {"annotations": {STOPPED: None}}}, "default")
    await eventually(there, WITHIN, "it comes back")


async def test_tensorboard_is_a_notebook_in_kubeflows_words(client: Client) -> None:
    async def made(logs: str) -> bool:
        with contextlib.suppress(NotFound):
            notebook = await client.get(NOTEBOOKS, "curves", "default")
            return f"--logdir={logs}" in notebook.pod_spec["containers"][0]["command"]
        return False

    body = {"metadata": {"name": "curves"}, "spec": {"logspath": "s3://runs/one"}}
    await client.create(TENSORBOARDS, body, "default")
    await eventually(lambda: made("s3://runs/one"), WITHIN, "the notebook of the Tensorboard")
    change = {"spec": {"logspath": "s3://runs/two"}}
    await client.patch(TENSORBOARDS, "curves", change, "default")
    await eventually(lambda: made("s3://runs/two"), WITHIN, "it follows")

    async def stated() -> list[str]:
        board = await client.get(TENSORBOARDS, "curves", "default")
        return [one["deploymentState"] for one in (board.status or {}).get("conditions") or ()]

    assert await eventually(stated, WITHIN, "its state in Kubeflow's words") == ["Progressing"]
    await client.delete(TENSORBOARDS, "curves", "default", propagation="Background")


async def test_other_systems_notebooks_and_kernels_are_served(client: Client) -> None:
    """A Workspace and a JupyterNotebook become notebooks, a JupyterKernelSpec an environment."""
    values = {"values": [{"id": "one", "spec": {"image": "lab:1"}}]}
    options = {"imageConfig": values, "podConfig": {"values": [{"id": "small", "spec": {}}]}}
    kind = {"podTemplate": {"options": options, "volumeMounts": {"home": "/home/u"}}}
    chosen = {"imageConfig": "one", "podConfig": "small"}
    template = {"options": chosen, "volumes": {"home": "claim"}}
    bodies: list[tuple[ForeignKind, str, dict[str, Any]]] = [
        (WORKSPACE_KIND, "lab", kind),
        (WORKSPACE, "space", {"kind": "lab", "podTemplate": template}),
        (jupyter.GATEWAY, "shared", {"cullIdleTimeout": 60}),
        (jupyter.KERNEL_SPEC, "py", {"language": "Python", "image": "kernel:1"}),
        (jupyter.NOTEBOOK, "elastic", {"gateway": {"name": "shared"}}),
    ]
    for foreign, name, spec in bodies:
        resource = foreign.resource

        async def created(resource: Any = resource, name: str = name, spec: Any = spec) -> bool:
            with contextlib.suppress(NotFound):
                space = "default" if resource.namespaced else None
                await client.create(resource, {"metadata": {"name": name}, "spec": spec}, space)
                return True
            return False

        await eventually(created, WITHIN, f"{foreign.kind} is served")

    async def made() -> bool:
        with contextlib.suppress(NotFound):
            environment = await client.get(ENVIRONMENTS, "py", "default")
            space = await client.get(NOTEBOOKS, "space", "default")
            elastic = await client.get(NOTEBOOKS, "elastic", "default")
            return (
                (environment.spec.image, environment.spec.idle.after) == ("kernel:1", "60s")
                and space.pod_spec["containers"][0]["image"] == "lab:1"
                and elastic.metadata.annotations["lockstep.dev/kernels"] == "remote"
            )
        return False

    await eventually(made, WITHIN, "all of them are served")
    workspaces = WORKSPACE.resource

    async def is_stopped(wanted: bool) -> bool:
        found = await client.get(workspaces, "space", "default")
        notebook = await client.get(NOTEBOOKS, "space", "default")
        stopped = STOPPED in notebook.metadata.annotations
        state = found.status.get("state")
        return (stopped, state) == (wanted, "Paused" if wanted else "Pending")

    await client.patch(workspaces, "space", {"spec": {"paused": True}}, "default")
    await eventually(lambda: is_stopped(True), WITHIN, "it is paused")
    await client.patch(workspaces, "space", {"spec": {"paused": False}}, "default")
    await eventually(lambda: is_stopped(False), WITHIN, "it goes on")
    for foreign, name, _ in bodies:
        space = "default" if foreign.namespaced else None
        await client.delete(foreign.resource, name, space, propagation="Background")


async def test_kernel_is_parked_when_nothing_stands_against_it(client: Client) -> None:
    spec = {"idle": {"after": "1h"}}
    with contextlib.suppress(AlreadyExists):
        await client.create(ENVIRONMENTS, {"metadata": {"name": "plain"}, "spec": spec}, "default")

    async def status() -> KernelStatus:
        return (await client.get(KERNELS, "session", "default")).status

    async with played(client, number=2) as kernels:
        body = {"metadata": {"name": "session"}, "spec": {"environment": "plain"}}
        await client.create(KERNELS, body, "default")

        async def running() -> bool:
            return (await status()).phase == "Running"

        await eventually(running, WITHIN, "the kernel runs")
        kernels.obstacles = [{"name": "g", "type": "generator", "why": "cannot pickle"}]
        kernels.idle_for = 7200.0
        await client.patch(KERNELS, "session", {"spec": {"wake": "look"}}, "default")

        async def named() -> bool:
            return (await status()).obstacles == ["g (generator): cannot pickle"]

        await eventually(named, WITHIN, "what cannot be kept is named")

        async def told() -> bool:
            events = (await client.list(EVENTS, "default")).items
            return any(one.reason == "NotParked" for one in events)

        await eventually(told, WITHIN, "an event says so")
        assert len(kernels.pods) == 1
        assert kernels.writes == 0
        kernels.obstacles, kernels.idle_for = [], 0.0

        async def forgotten() -> bool:
            return (await status()).obstacles == []

        await client.patch(KERNELS, "session", {"spec": {"wake": "again"}}, "default")
        await eventually(forgotten, WITHIN, "it is used again")
        kernels.idle_for = 7200.0
        await client.patch(KERNELS, "session", {"spec": {"wake": "idle"}}, "default")

        async def parked() -> bool:
            return (await status()).phase == "Parked"

        await eventually(parked, WITHIN, "it is parked")
