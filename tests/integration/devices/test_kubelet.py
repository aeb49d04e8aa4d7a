"""GPUs handed out through a real kubelet, containerd and runc by the device plugin."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support import installed
from tests.support.device_tree import DeviceTree
from tests.support.kube_apiserver import free_ports
from tests.support.kube_cluster import KubeCluster
from tests.support.kubelet import IMAGE, Kubelet
from tests.support.recorded_sys import VERBS, seeing
from tests.support.scheduler import PartProcess
from tests.support.stub_gpus import TENANT, StubGpus, two
from tests.support.waiting import eventually_sync

from lockstep.devices.admission import objects

grpc = pytest.importorskip("grpc", reason="grpcio is not installed: pip install lockstep[agent]")

GPU = "nvidia.com/gpu"
NICS = "lockstep.dev/nics"
PODS = "/api/v1/namespaces/default/pods"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
APPLY = "application/apply-patch+yaml"
DRIVER = "gpu.lockstep.dev"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaim"
FIRST, SECOND = (f"GPU-00000000-0000-0000-0000-00000000000{index}" for index in range(2))


@dataclass
class Place:
    """A cluster of one real node with two stub GPUs, the agent and the scheduler."""

    cluster: KubeCluster
    kubelet: Kubelet
    gpus: StubGpus
    agent: PartProcess
    tree: DeviceTree

    def node(self) -> dict[str, Any]:
        answer = self.cluster.request("GET", "/api/v1/nodes/real")
        return dict(answer.json) if answer.status == 200 else {}

    def allocatable(self, resource: str = GPU) -> str:
        return str(self.node().get("status", {}).get("allocatable", {}).get(resource, ""))

    def wait_allocatable(self, amount: str, resource: str = GPU) -> None:
        eventually_sync(
            lambda: self.allocatable(resource) == amount, 90, f"kubelet counts {amount} {resource}"
        )

    def usable(self) -> set[str]:
        """Return the cards that kubelet would hand out or has."""
        from tests.support.node_questions import usable

        try:
            return asyncio.run(usable(self.kubelet.directory, GPU))
        except grpc.aio.AioRpcError:
            return set()

    def create(
        self,
        name: str,
        *,
        node: str = "",
        resource: str = GPU,
        look: str = "nvidia",
        more: tuple[str, ...] = (),
    ) -> None:
        script = (
            "env | grep -e VISIBLE -e PCIDEVICE -e NCCL; ls /dev /dev/infiniband "
            f"| grep -e {look} -e uverbs; echo end; sleep 3600"
        )
        main = {
            "name": "main",
            "image": IMAGE,
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", script.replace("| grep", "| busybox grep")],
            "resources": {"limits": dict.fromkeys((resource, *more), "1")},
        }
        spec = {
            "hostNetwork": True,
            "terminationGracePeriodSeconds": 0,
            "containers": [main],
            **({"nodeName": node} if node else {"schedulerName": "lockstep"}),
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        answer = self.cluster.request("POST", PODS, pod)
        assert answer.status == 201, answer.body

    def claim(self, name: str) -> None:
        """Create a pod that claims one card by a template."""
        main = {
            "name": "main",
            "image": IMAGE,
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", "env | busybox grep LOCKSTEP; echo end; sleep 3600"],
            "resources": {"claims": [{"name": "card"}]},
        }
        spec = {
            "hostNetwork": True,
            "terminationGracePeriodSeconds": 0,
            "containers": [main],
            "schedulerName": "lockstep",
            "resourceClaims": [{"name": "card", "resourceClaimTemplateName": "one"}],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        answer = self.cluster.request("POST", PODS, pod)
        assert answer.status == 201, answer.body

    def template(self) -> None:
        exactly = {"deviceClassName": DRIVER, "count": 1}
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "one"},
            "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
        }
        answer = self.cluster.request("POST", f"{CLAIMS}templates", body)
        assert answer.status == 201, answer.body

    def prepared(self) -> dict[str, list[str]]:
        """Return the variables of each prepared claim, by the file of its CDI specification."""
        found = {}
        files = self.kubelet.cdi.glob("*.json")
        for file in (one for one in files if one.name != f"{DRIVER}-cards.json"):
            (device,) = json.loads(file.read_text())["devices"]
            found[file.name] = device["containerEdits"]["env"]
        return found

    def health(self, name: str) -> list[str]:
        """Return the health of a pod's claimed devices as kubelet writes it."""
        pod = self.cluster.request("GET", f"{PODS}/{name}").json
        return [
            device["health"]
            for container in pod.get("status", {}).get("containerStatuses", [])
            for resource in container.get("allocatedResourcesStatus", [])
            for device in resource["resources"]
        ]

    def annotation(self, name: str) -> str:
        meta = self.cluster.request("GET", f"{PODS}/{name}").json["metadata"]
        return str(meta.get("annotations", {}).get("lockstep.dev/gpus", ""))

    def output(self, name: str) -> str:
        """Return what the pod's container wrote, once it wrote its last line."""
        # A pod of this name that went before may have left its logs.
        uid = self.cluster.request("GET", f"{PODS}/{name}").json["metadata"]["uid"]

        def look() -> str | None:
            for file in (self.kubelet.data / "logs").glob(f"default_{name}_{uid}/main/*.log"):
                text = file.read_text()
                if " F end" in text:
                    return re.sub(r"(?m)^\S+ stdout F ", "", text)
            return None

        return eventually_sync(look, 120, f"{name} ran ({self.kubelet.log})")

    def delete(self, *names: str) -> None:
        now = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        for name in names:
            self.cluster.request("DELETE", f"{PODS}/{name}", now)
        for name in names:
            gone = f"{PODS}/{name}"
            eventually_sync(
                lambda path=gone: self.cluster.request("GET", path).status == 404,
                60,
                f"{name} is gone",
            )


def nics_and_cards(root: Path) -> DeviceTree:
    """Return the node's tree: each card has a RoCE NIC with a VF beside it, in another order."""
    tree = DeviceTree(root)
    v4 = "0000:0000:0000:0000:0000:ffff:0a3c:0001"
    for number, card in enumerate(("0000:27:00.0", "0000:17:00.0")):
        pci, bus = f"pci0000:{card[5]}5", f"0000:{card[5]}8:00.0"
        tree.pci(card, pci, vendor=0x10DE, device=0x2335, class_=0x030200, numa=1 - number)
        gids = {3 + number: v4}
        tree.rdma(f"mlx5_{number}", bus, pci, numa=1 - number, verbs=90 + number, gids=gids)
        tree.virtual_function(bus, 0, f"mlx5_{2 + number}", verbs=92 + number)
    return tree


VFS = "mellanox.com/vfs"
BESIDE = {"0": "0000:18:00", "1": "0000:28:00"}
"""By the index of a card: the address of the NIC beside it, but for the function."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    data = tmp_path_factory.mktemp("real")
    gpus = StubGpus(data / "gpus")
    gpus.update(two())
    before = dict(os.environ)
    os.environ.update(gpus.environment())
    cluster = KubeCluster(data / "cluster")
    kubelet = Kubelet(cluster.kubeconfig, data / "node")
    kubelet.cdi.mkdir(parents=True)
    where = ("--kubelet", str(kubelet.directory), "--cdi", str(kubelet.cdi))
    options = ("--node", "real", *where, "--metrics-port", "0")
    tree = nics_and_cards(data / "tree")
    before_it = seeing(tree.root, VERBS)
    agent = PartProcess(cluster.kubeconfig, options=options, part="agent", before=before_it)
    scheduler = PartProcess(cluster.kubeconfig)
    try:
        cluster.start()
        kubelet.start()
        agent.start()
        scheduler.start()
        found = Place(cluster, kubelet, gpus, agent, tree)
        found.wait_allocatable("2")
        yield found
    finally:
        for part in (agent, scheduler):
            part.kill()
        kubelet.kill()
        cluster.kill()
        os.environ.clear()
        os.environ.update(before)


def test_pods_get_the_card_that_the_scheduler_chose(place: Place) -> None:
    for name in ("one", "other"):
        place.create(name)
    given = {}
    for name in ("one", "other"):
        output = place.output(name)
        index = place.annotation(name)
        given[name] = index
        assert f"NVIDIA_VISIBLE_DEVICES={(FIRST, SECOND)[int(index)]}\n" in output
    assert sorted(given.values()) == ["0", "1"]
    place.delete("one", "other")


def test_a_pod_bound_by_somebody_else_is_recorded(place: Place) -> None:
    place.create("foreign", node="real")
    output = place.output("foreign")
    held = 0 if FIRST in output else 1
    eventually_sync(
        lambda: place.annotation("foreign") == str(held), 60, "the record says what it holds"
    )
    place.delete("foreign")


def test_a_lost_card_is_no_longer_counted(place: Place) -> None:
    place.gpus.card(1, {"lost": 1})
    place.wait_allocatable("1")
    place.gpus.card(1, {"lost": 0})
    place.wait_allocatable("2")


def test_grants_survive_restarts_of_kubelet_and_agent(place: Place) -> None:
    place.create("lasting")
    index = place.annotation("lasting") if place.output("lasting") else ""
    for restarted in ("agent", "kubelet"):
        if restarted == "agent":
            place.agent.kill()
            place.agent.start()
        else:
            os.kill(kubelet_pid(place.kubelet), signal.SIGKILL)
        eventually_sync(lambda: place.usable() == {FIRST, SECOND}, 90, "kubelet knows both cards")
        assert place.annotation("lasting") == index
        name = f"after-{restarted}"
        place.create(name)
        assert (FIRST, SECOND)[1 - int(index)] in place.output(name)
        place.delete(name)
    place.delete("lasting")


@pytest.fixture
def webhook(place: Place) -> Iterator[PartProcess]:
    """The webhook for shares, with the rights of its own account."""
    for obj in installed.account("admission"):
        text = json.dumps(obj).encode()
        where = f"{installed.path(obj)}?fieldManager=installer&force=true"
        made = place.cluster.request("PATCH", where, text, content_type=APPLY)
        assert made.status in (200, 201), made.body
    accounts = "/api/v1/namespaces/lockstep-system/serviceaccounts/lockstep-admission/token"
    token = place.cluster.request("POST", accounts, {"spec": {}}).json["status"]["token"]
    config = place.cluster.data / "kubeconfigs/admission.kubeconfig"
    installed.write_token(config, place.cluster, token)
    (port,) = free_ports(1)
    body = objects.configuration(url=f"https://127.0.0.1:{port}")
    # The installation's own leads to a service of the cluster, where no pod answers here.
    place.cluster.request("DELETE", f"{WEBHOOKS}/{objects.NAME}")
    assert place.cluster.request("POST", WEBHOOKS, body).status == 201
    found = PartProcess(config, options=("--port", str(port)), part="admission")
    yield found
    found.kill()
    place.cluster.request("DELETE", f"{WEBHOOKS}/{objects.NAME}")


def sharing(
    place: Place, name: str, limits: dict[str, str], words: str, memory: int = 0
) -> dict[str, Any]:
    """Return a pod with a share that does as *words* tell the tenant, with this machine's libc.

    It begins once its share is of *memory* MiB: kubelet tells too late which container has which.
    """
    state = str(place.gpus.file.parent)
    paths = ["/usr", "/lib", "/lib64", str(TENANT.parents[1]), state]
    variables = place.gpus.environment()
    held = f'until [ "$({TENANT} info)" = "info {memory} {memory}" ]; do sleep 0.1; done'
    main = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", f"{held}; {TENANT} {words}; echo end; sleep 3600"],
        "resources": {"limits": limits},
        "env": [{"name": k, "value": v} for k, v in variables.items() if k.startswith("LOCKSTEP")],
        "volumeMounts": [{"name": f"v{n}", "mountPath": path} for n, path in enumerate(paths)],
    }
    spec = {
        "hostNetwork": True,
        "terminationGracePeriodSeconds": 0,
        "containers": [main],
        "volumes": [{"name": f"v{n}", "hostPath": {"path": p}} for n, p in enumerate(paths)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_shares_of_any_dialect_are_held(place: Place, webhook: PartProcess) -> None:
    ours = {"lockstep.dev/gpu-memory": "1000", "lockstep.dev/gpu-compute": "30"}
    hamis = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2000", "nvidia.com/gpucores": "60"}
    words = "info alloc 900 plain alloc {more} plain info"
    pods = [
        sharing(place, "ours", ours, words.format(more=200), 1000),
        sharing(place, "hamis", hamis, words.format(more=1200), 2000),
    ]
    # Without the webhook's answer a pod with a share is not let in, and any other is.
    refused = place.cluster.request("POST", PODS, pods[0])
    assert refused.status == 500, refused.body
    assert "failed calling webhook" in refused.json["message"]
    place.create("whole", node="real")
    place.delete("whole")
    webhook.start()

    def let_in() -> bool:
        return place.cluster.request("POST", f"{PODS}?dryRun=All", pods[0]).status == 201

    eventually_sync(let_in, 30, "the API server trusts the webhook")
    wrong = sharing(place, "wrong", {"nvidia.com/gpumem": "5.5"}, "")
    answer = place.cluster.request("POST", PODS, wrong)
    assert answer.status == 422, answer.body
    assert "a whole number is needed" in answer.json["message"]
    cards = set()
    # Both containers run at once, on one card.
    for one in pods:
        made = place.cluster.request("POST", PODS, one)
        assert made.status == 201, made.body
        assert made.json["spec"]["schedulerName"] == "lockstep"
    for name, limit in (("ours", 1000), ("hamis", 2000)):
        assert place.output(name).splitlines()[:4] == [
            f"info {limit} {limit}",
            "alloc plain CUDA_SUCCESS",
            "alloc plain CUDA_ERROR_OUT_OF_MEMORY",
            f"info {limit - 900} {limit}",
        ]
        cards.add(place.annotation(name))
    assert len(cards) == 1, "both are on one card"
    # A whole card is another one, and no share is left when its pod is gone.
    place.create("whole", node="real")
    assert (FIRST, SECOND)[int(cards.pop())] not in place.output("whole")
    place.delete("ours", "hamis", "whole")
    kept = place.kubelet.directory / "lockstep-shares"
    eventually_sync(lambda: not any(kept.iterdir()), 60, "their shares are gone")


@pytest.fixture
def fpga() -> Iterator[Path]:
    """A device file that there is nowhere else."""
    if os.geteuid() != 0:
        pytest.skip("to make a device file takes root")
    file = Path("/dev/lockstep-test-fpga0")
    os.mknod(file, 0o20666, os.makedev(1, 3))
    yield file
    file.unlink()


def test_a_file_that_a_config_map_names_is_handed_out(place: Place, fpga: Path) -> None:
    name, where = "lockstep-device-files", "/api/v1/namespaces/lockstep-system"
    whole = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lockstep-system"}}
    place.cluster.request("POST", "/api/v1/namespaces", whole)
    text = "- {resource: example.com/fpga, files: [/dev/lockstep-test-fpga*, /dev/disk*]}"
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"devices.yaml": text},
    }
    answer = place.cluster.request("POST", f"{where}/configmaps", config)
    assert answer.status == 201, answer.body

    def offered() -> bool:
        amounts = place.node().get("status", {}).get("allocatable", {})
        return bool(amounts.get("example.com/fpga") == "1")

    eventually_sync(offered, 90, "kubelet counts the file")
    place.create("fpga", resource="example.com/fpga", look="lockstep-test")
    assert fpga.name in place.output("fpga")
    place.delete("fpga")


def test_a_prepared_claims_card_goes_to_no_other_pod(place: Place) -> None:
    place.template()
    place.claim("claimed")
    output = place.output("claimed")
    index = place.annotation("claimed")
    card = (FIRST, SECOND)[int(index)]
    (variables,) = place.prepared().values()
    assert f"LOCKSTEP_DEVICES_GPU={card}" in variables
    if place.kubelet.has_cdi:
        assert f"LOCKSTEP_DEVICES_GPU={card}\n" in output
    eventually_sync(lambda: place.health("claimed") == ["Healthy"], 60, "kubelet knows the health")
    place.agent.kill()
    # A reboot empties the directory of specifications; a claim that is gone left its file.
    specifications = place.prepared()
    for name in specifications:
        (place.kubelet.cdi / name).unlink()
    other = ({FIRST, SECOND} - {card}).pop()
    stale = place.kubelet.directory / f"plugins/{DRIVER}/claims/gone.json"
    stale.write_text(json.dumps({"claim": "default/gone", "cards": [other]}))
    place.agent.start()
    eventually_sync(lambda: place.usable() == {FIRST, SECOND}, 90, "kubelet knows both cards")
    eventually_sync(lambda: place.prepared() == specifications, 60, "specifications are back")
    assert not stale.exists()
    # A pod that another scheduler bound gets the other card, though kubelet counts both as free.
    place.create("foreign", node="real")
    assert card not in place.output("foreign")
    place.claim("waiting")
    place.delete("claimed")
    place.output("waiting")
    assert place.annotation("waiting") == index
    place.delete("waiting", "foreign")
    eventually_sync(lambda: not place.prepared(), 60, "nothing stays prepared")
    eventually_sync(
        lambda: not place.cluster.request("GET", f"{CLAIMS}s").json["items"],
        60,
        "the claims are gone",
    )


@pytest.fixture
def vfs(place: Place) -> None:
    """The SR-IOV plugin's ConfigMap, as it is where that plugin runs."""
    selectors = {"vendors": ["15b3"], "pciAddresses": ["0000:18:00.1", "0000:28:00.1"]}
    listed = [
        {
            "resourcePrefix": "mellanox.com",
            "resourceName": "vfs",
            "selectors": {**selectors, "isRdma": True},
        }
    ]
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "sriovdp-config"},
        "data": {"config.json": json.dumps({"resourceList": listed})},
    }
    answer = place.cluster.request("POST", "/api/v1/namespaces/kube-system/configmaps", config)
    assert answer.status == 201, answer.body


def test_nics_and_vfs_beside_the_granted_card_are_handed_out(place: Place, vfs: None) -> None:
    place.wait_allocatable("2", VFS)
    place.wait_allocatable("2", NICS)
    place.create("one", more=(NICS, VFS))
    place.create("other", more=(NICS, VFS))
    for name in ("one", "other"):
        output = place.output(name)
        card = place.annotation(name)
        assert f"PCIDEVICE_LOCKSTEP_DEV_NICS={BESIDE[card]}.0\n" in output
        assert f"PCIDEVICE_MELLANOX_COM_VFS={BESIDE[card]}.1\n" in output
        number = 1 - int(card)
        assert f"uverbs{90 + number}\n" in output
        assert f"uverbs{92 + number}\n" in output
        assert f"uverbs{91 - number}\n" not in output
    place.delete("one", "other")


def test_a_nic_whose_link_is_down_is_no_longer_counted(place: Place) -> None:
    place.wait_allocatable("2", NICS)
    place.tree.link("mlx5_1", up=False)
    place.wait_allocatable("1", NICS)
    place.tree.link("mlx5_1", up=True)
    place.wait_allocatable("2", NICS)


def kubelet_pid(kubelet: Kubelet) -> int:
    """Return the process of the kubelet that reads this test's settings."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"/kubelet") and str(kubelet.data).encode() in b" ".join(words):
                return int(entry.name)
    raise AssertionError("no kubelet runs")
