"""Each part with the account that it has on a cluster: what it serves, and what it seldom does."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.kube_apiserver import free_ports
from tests.support.proxy import Proxy
from tests.support.scheduler import PartProcess, add_gang, add_nodes, nodes_of, pod_body
from tests.support.training import role
from tests.support.waiting import eventually

from lockstep.api.core import CONFIG_MAPS, EVENTS, NODES, PODS, SECRETS
from lockstep.api.gang import GANGS
from lockstep.api.queue import QUEUES
from lockstep.api.training import TRAINING_JOBS
from lockstep.jobs.frameworks.base import CONFIG_SUFFIX, SSH_SUFFIX
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_crds

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
UNCHECKED = ssl.create_default_context()
UNCHECKED.check_hostname = False
UNCHECKED.verify_mode = ssl.CERT_NONE


def config(server: ApiServer, part: str) -> Path:
    return server.data / "kubeconfigs" / f"{part}.kubeconfig"


@pytest.fixture
async def client(any_server: ApiServer) -> AsyncIterator[Client]:
    async with any_server.client() as one:
        yield one


def get(url: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  this machine's
    try:
        with urllib.request.urlopen(request, timeout=10, context=UNCHECKED) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def scraper(server: ApiServer, name: str, *, may_read: bool) -> str:
    """Return a token of an account that may read metrics, or may not."""
    made = server.request("POST", ACCOUNTS, {"metadata": {"name": name}})
    assert made.status in (201, 409), made.body
    if may_read:
        rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        body = {"metadata": {"name": name}, "subjects": [subject], "roleRef": reference}
        server.request(
            "POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [rule]}
        )
        server.request("POST", f"{RBAC}/clusterrolebindings", body)
    token = server.request("POST", f"{ACCOUNTS}/{name}/token", {"spec": {}})
    return str(token.json["status"]["token"])


@pytest.mark.parametrize("part", ["scheduler", "controllers"])
def test_metrics_need_the_right_to_read_and_probes_do_not(any_server, part):
    probes, metrics = free_ports(2)
    options = ("--probe-port", str(probes), "--secure-metrics-port", str(metrics))
    process = PartProcess(config(any_server, part), options=options, part=part).start()
    try:
        url = f"https://127.0.0.1:{metrics}/metrics"
        assert get(f"http://127.0.0.1:{probes}/readyz") == (200, "ok\n")
        assert get(f"http://127.0.0.1:{probes}/metrics")[0] == 404
        assert get(url)[0] == 401
        assert get(url, "invented")[0] == 401
        assert get(url, scraper(any_server, "idle", may_read=False))[0] == 403
        status, text = get(url, scraper(any_server, "prometheus", may_read=True))
        assert status == 200
        assert f'lockstep_leader{{name="lockstep-{part}"}}' in text
        assert process.stop() == 0, "it gives the lease back"
    finally:
        process.kill()


async def test_a_binding_whose_answer_is_lost_is_asked_about(any_server, client, tmp_path):
    await ensure_crds(client)
    await add_nodes(client, [f"n{i}" for i in range(40)], spine="a", leaf="a")
    proxy = Proxy(any_server.port)
    async with proxy.running() as port:
        text = config(any_server, "scheduler").read_text()
        through = tmp_path / "through"
        through.write_text(text.replace(f":{any_server.port}", f":{port}"))
        scheduler = await asyncio.to_thread(PartProcess(through).start)
        try:
            for round_ in range(3):
                gang, proxy.late = f"big-{round_}", 1.0
                await add_gang(client, gang, 100, gpus=1)

                async def bound(gang: str = gang) -> int:
                    return len(await nodes_of(client, gang))

                await eventually(bound)
                proxy.late = 0.0
                proxy.cut()

                async def whole(gang: str = gang) -> bool:
                    return len(await nodes_of(client, gang)) == 100

                await eventually(whole, 90.0)
        finally:
            scheduler.kill()
    pods = (await client.list(PODS, "default")).items
    held = {
        (p.spec.node_name, gpu)
        for p in pods
        for gpu in p.metadata.annotations["lockstep.dev/gpus"].split(",")
    }
    assert len(held) == len(pods) == 300, "no device is held twice"


async def test_a_queue_shows_what_waits_in_it(any_server, client):
    await ensure_crds(client)
    scheduler = PartProcess(config(any_server, "scheduler")).start()
    try:
        await client.create(QUEUES, {"metadata": {"name": "default"}})
        await client.create(PODS, pod_body("waits"))

        async def shown() -> bool:
            return (await client.get(QUEUES, "default")).status.pending == 1

        await eventually(shown)
    finally:
        scheduler.kill()


async def test_a_repeated_reason_raises_the_count_of_its_event(any_server, client):
    await ensure_crds(client)
    scheduler = PartProcess(config(any_server, "scheduler")).start()
    try:
        gang = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 1}}
        await client.create(GANGS, gang)

        async def waits_for_members(wanted: bool) -> bool:
            reason = (await client.get(GANGS, "g", "default")).status.reason
            return bool(reason) and (reason == "MembersMissing") == wanted

        await eventually(lambda: waits_for_members(True))
        await client.create(PODS, pod_body("g-0", gang="g"))
        await eventually(lambda: waits_for_members(False))
        await client.delete(PODS, "g-0", "default", grace_seconds=0)

        async def counted() -> bool:
            events = await client.list(EVENTS, "default")
            return any(e.involved_object.name == "g" and e.count == 2 for e in events.items)

        await eventually(counted)
    finally:
        scheduler.kill()


MPI: dict[str, Any] = {
    "metadata": {"name": "m", "namespace": "default"},
    "spec": {
        "framework": "mpi",
        "roles": [role("true", "launcher", replicas=1), role("true", "worker", replicas=1)],
    },
}


@pytest.mark.parametrize(
    ("resource", "suffix", "spec"),
    [
        (CONFIG_MAPS, CONFIG_SUFFIX, {}),
        (SECRETS, SSH_SUFFIX, {}),
        (GANGS, "", {}),
        (PODS, "-worker-0", {"spec": {"containers": [{"name": "main", "image": "other"}]}}),
    ],
)
async def test_a_foreign_object_under_a_jobs_name_stays_untouched(
    any_server, client, resource, suffix, spec
):
    await ensure_crds(client)
    name = f"m{suffix}"
    await client.create(resource, {"metadata": {"name": name, "namespace": "default"}, **spec})
    controllers = PartProcess(config(any_server, "controllers"), part="controllers").start()
    try:
        await client.create(TRAINING_JOBS, MPI)

        async def said() -> bool:
            status = (await client.get(TRAINING_JOBS, "m", "default")).status
            return f"{resource.kind} {name} exists already" in status.message

        await eventually(said)
        assert not (await client.get(resource, name, "default")).metadata.owner_references
    finally:
        controllers.kill()


@pytest.mark.parametrize(
    ("resource", "suffix", "file"),
    [(CONFIG_MAPS, CONFIG_SUFFIX, "hostfile"), (SECRETS, SSH_SUFFIX, "config")],
)
async def test_what_somebody_changed_of_a_jobs_files_is_put_right(
    any_server, client, resource, suffix, file
):
    await ensure_crds(client)
    controllers = PartProcess(config(any_server, "controllers"), part="controllers").start()
    path = resource.path("default", f"m{suffix}")

    def content() -> Any:
        answer = any_server.request("GET", path)
        return json.loads(answer.body).get("data", {}).get(file)

    try:
        await client.create(TRAINING_JOBS, MPI)
        made = await eventually(content)
        wrong = base64.b64encode(b"nonsense").decode()
        await client.patch(resource, f"m{suffix}", {"data": {file: wrong}}, "default")
        if resource is SECRETS:  # it is not followed, but looked at with the job
            await client.patch(TRAINING_JOBS, "m", {"metadata": {"labels": {"a": "b"}}}, "default")
        await eventually(lambda: content() == made)
    finally:
        controllers.kill()


async def test_nodes_that_are_there_become_what_is_simulated_now(any_server, client):
    kubeconfig = config(any_server, "simulate-nodes")
    part = PartProcess(kubeconfig, options=("2x4",), part="simulate-nodes").start()
    part.kill()
    first, second = (await client.list(NODES)).items
    await client.delete(NODES, second.metadata.name)
    await client.create(NODES, {"metadata": {"name": second.metadata.name}})
    part = PartProcess(kubeconfig, options=("2x8",), part="simulate-nodes").start()
    try:
        for name in (first.metadata.name, second.metadata.name):
            node = await client.get(NODES, name)
            assert node.status.capacity["nvidia.com/gpu"] == "8"
            assert node.metadata.labels["lockstep.dev/node"] == "simulated"
    finally:
        part.kill()
