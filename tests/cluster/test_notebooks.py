"""A notebook's kernel computes on a card, is parked, and comes back on another node."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.on_cluster import OnCluster
from tests.support.waiting import stretched
from tools.cluster import images, layout, programs

from lockstep.api.names import SYSTEM_NAMESPACE

websocket = pytest.importorskip("websocket", reason="needs websocket-client")

Json = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
FIRST = (
    "import numpy as np, os; weights = np.arange(4.0); step = lambda: weights * 2; print('kept')"
)
SECOND = "weights[0] = 7; print('sum', step().sum(), os.environ['CUDA_VISIBLE_DEVICES'][:4])"


@pytest.fixture(scope="module")
def image(installed: OnCluster) -> str:
    made = images.kernels()
    installed.cluster.push(made)
    return made.reference


@pytest.fixture
def gateway(cluster: OnCluster) -> Iterator[str]:
    """Where the gateway's Service answers on this machine."""
    kubectl = [str(programs.kubernetes("kubectl")), f"--kubeconfig={cluster.cluster.kubeconfig}"]
    words = ["-n", SYSTEM_NAMESPACE, "port-forward", "service/lockstep-gateway", ":7485"]
    with subprocess.Popen([*kubectl, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())
        assert found, "kubectl port-forward ended"
        yield found[0]
        process.kill()


def place(cluster: OnCluster, image: str) -> list[Json]:
    """Return an environment with a card and a volume that all nodes reach, and ana who edits."""
    shared = cluster.cluster.record.shared / cluster.space
    shared.mkdir(mode=0o777)
    shared.chmod(0o777)
    size = {"storage": "1Gi"}
    reach = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {
        **reach,
        "capacity": size,
        "claimRef": {"namespace": cluster.space, "name": "home"},
        "hostPath": {"path": f"{layout.SHARED}/{cluster.space}"},
    }
    claim = {**reach, "volumeName": cluster.space, "resources": {"requests": size}}
    environment = {
        "image": image,
        "variables": {"HOME": "/home/ana"},
        "volumes": [{"claim": "home", "path": "/home/ana"}],
        "resources": {"nvidia.com/gpu": 1},
        "idle": {"after": "10s"},
    }
    subject = {"kind": "ServiceAccount", "name": "ana", "namespace": cluster.space}
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "edit"}
    binding = {"metadata": {"name": "ana"}, "roleRef": role, "subjects": [subject]}

    def made(version: str, kind: str, name: str, **fields: Any) -> Json:
        return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}

    return [
        made("v1", "PersistentVolume", cluster.space, spec=volume),
        made("v1", "PersistentVolumeClaim", "home", spec=claim),
        made("lockstep.dev/v1alpha1", "Environment", "gpu", spec=environment),
        made("v1", "ServiceAccount", "ana"),
        {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", **binding},
    ]


def printed(client: Any, code: str) -> str:
    """Run a cell and return what it printed."""
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "session": "s"}
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
    message = {"channel": "shell", "header": header, "parent_header": {}, "metadata": {}}
    client.send(json.dumps({**message, "content": content}))
    said, ends = "", set[str]()
    # Output and answer come by channels of their own: neither waits for the other.
    while ends != _ENDS:
        told = json.loads(client.recv())
        if told["parent_header"].get("msg_id") != header["msg_id"]:
            continue
        assert told["msg_type"] != "error", told["content"]
        if told["msg_type"] == "stream" and told["content"]["name"] == "stdout":
            said += told["content"]["text"]
        ends |= {told["msg_type"], told["content"].get("execution_state")} & _ENDS
    return said


_ENDS = {"execute_reply", "idle"}
"""What tells that a cell is over."""


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("cards")
def test_parked_kernel_returns_on_another_node(
    cluster: OnCluster, image: str, gateway: str
) -> None:
    cluster.apply(*place(cluster, image))
    token = cluster.kubectl("create", "token", "ana").strip()
    body = json.dumps({"name": "gpu", "env": {"KERNEL_NAMESPACE": cluster.space}}).encode()
    sign = {"Authorization": f"Bearer {token}"}
    asked = urllib.request.Request(f"http://{gateway}/api/kernels", body, sign)
    with urllib.request.urlopen(asked, timeout=stretched(60)) as answer:  # noqa: S310
        number = json.load(answer)["id"]
    url = f"ws://{gateway}/api/kernels/{number}/channels?namespace={cluster.space}"
    client = websocket.create_connection(
        url, header=[f"Authorization: {sign['Authorization']}"], timeout=stretched(180)
    )
    assert printed(client, FIRST) == "kept\n"
    pod = f"kernel-{number}"
    node = cluster.get("pod", pod)["spec"]["nodeName"]

    def parked() -> bool:
        phase = cluster.get("kernel", number)["status"].get("phase")
        return phase == "Parked" and not cluster.get("pod", pod)

    cluster.wait(parked, 180, "the kernel is parked and its card is free")
    cluster.kubectl("cordon", node)
    try:
        assert printed(client, SECOND) == "sum 26.0 GPU-\n"
        assert cluster.get("pod", pod)["spec"]["nodeName"] != node
    finally:
        cluster.kubectl("uncordon", node)
        client.close()
