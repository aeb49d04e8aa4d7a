"""Volumes where the pod wants them, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from tests.support.process_node import (
    ProcessNode,
    needs_mounts,
    needs_root,
    phase,
    pod,
    read_log,
    reasons,
    status,
)
from tests.support.waiting import eventually

from lockstep.api.core import CONFIG_MAPS, SECRETS
from lockstep.kube.client import Client
from lockstep.nodes.process.spec import POD_RUNS

pytestmark = pytest.mark.usefixtures("mounts")


@pytest.fixture
def mounts() -> None:
    needs_mounts()


async def test_every_kind_of_volume_is_where_the_pod_wants_it(
    client: Client, node: ProcessNode, tmp_path: Path
) -> None:
    data = {"data": {"a": "1", "b": "2"}}
    await client.create(CONFIG_MAPS, {"metadata": {"name": "files"}, **data}, "default")
    await client.create(
        SECRETS, {"metadata": {"name": "keys"}, "data": {"k": "czNjcjN0"}}, "default"
    )
    (tmp_path / "there").write_text("host")
    volumes = [
        {"name": "c", "configMap": {"name": "files", "items": [{"key": "a", "path": "x/y"}]}},
        {"name": "s", "secret": {"secretName": "keys", "defaultMode": 0o400}},
        {
            "name": "d",
            "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]},
        },
        {
            "name": "p",
            "projected": {
                "sources": [{"configMap": {"name": "files"}}, {"secret": {"name": "keys"}}]
            },
        },
        {"name": "h", "hostPath": {"path": str(tmp_path), "type": "Directory"}},
        {"name": "e", "emptyDir": {}},
        {"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
    ]
    wanted = {
        "c": "/nowhere/config",
        "s": "/nowhere/keys",
        "d": "/usr/nowhere/pod",
        "p": "/all",
        "h": "/host",
        "e": "/scratch",
        "m": "/memory",
    }
    places = [{"name": key, "mountPath": path} for key, path in wanted.items()]
    places += [
        {"name": "c", "mountPath": "/one-file", "subPath": "x/y", "readOnly": True},
        {"name": "e", "mountPath": "/part", "subPath": "deep/er"},
        {"name": "h", "mountPath": "/fixed", "readOnly": True},
    ]
    script = """
        cat /nowhere/config/x/y /nowhere/keys/k /usr/nowhere/pod/n /all/b /host/there /one-file
        echo
        stat -Lc %a /nowhere/keys/k; df --output=fstype /nowhere/keys /memory | sort -u
        echo new > /scratch/deep/er/file && cat /part/file; echo x > /host/new
        echo x > /fixed/new2 || echo fixed; ls / | grep -c .; test -e /proc/self/mounts && echo proc
        head -c 2000000 /dev/zero > /memory/big || echo full
    """
    await client.create(
        POD_RUNS, pod("volumes", script, volumes=volumes, container={"volumeMounts": places})
    )
    await phase(client, "volumes", "Succeeded")
    lines = read_log(node, "volumes").splitlines()
    assert lines[0] == "1s3cr3tvolumes2host1"
    assert {"400", "tmpfs", "new", "fixed", "proc", "full"} <= set(lines)
    assert (tmp_path / "new").read_text() == "x\n"
    for path in ("/nowhere", "/usr/nowhere", "/all", "/scratch", "/memory", "/one-file"):
        assert not Path(path).exists()
    assert str(node.data) not in Path("/proc/mounts").read_text()


async def test_containers_of_a_pod_share_a_directory(client: Client, node: ProcessNode) -> None:
    place = {"volumeMounts": [{"name": "v", "mountPath": "/shared"}]}
    first = {"name": "first", "image": "i", "command": ["sh", "-c", "echo hi > /shared/f"], **place}
    await client.create(
        POD_RUNS,
        pod(
            "share",
            "cat /shared/f",
            initContainers=[first],
            container=place,
            volumes=[{"name": "v", "emptyDir": {}}],
        ),
    )
    await phase(client, "share", "Succeeded")
    assert read_log(node, "share") == "hi\n"


@pytest.mark.parametrize(
    ("name", "mount", "volume"),
    [
        ("up", {"mountPath": "/x", "subPath": "a/../../b"}, {"emptyDir": {}}),
        ("rooted", {"mountPath": "/x", "subPath": "/etc"}, {"emptyDir": {}}),
    ],
)
async def test_path_that_climbs_out_is_refused(
    client: Client, name: str, mount: dict[str, object], volume: dict[str, object]
) -> None:
    from lockstep.kube.errors import Invalid

    obj = pod(
        name,
        "exit 0",
        container={"volumeMounts": [{"name": "v", **mount}]},
        volumes=[{"name": "v", **volume}],
    )
    try:
        await client.create(POD_RUNS, obj)
    except Invalid:
        return  # the server refuses it before the node has to
    await phase(client, name, "Failed")
    assert (await status(client, name))["reason"] == "InvalidPod"


async def test_sub_path_through_a_link_stays_inside(client: Client) -> None:
    link = {"name": "link", "image": "i", "command": ["ln", "-s", "/etc", "/v/out"]}
    link["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]  # type: ignore[assignment]
    place = {"volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "out"}]}
    volumes = [{"name": "v", "emptyDir": {}}]
    await client.create(
        POD_RUNS,
        pod("link", "ls /x", initContainers=[link], container=place, volumes=volumes),
    )

    async def refused() -> bool:
        found = (await status(client, "link")).get("containerStatuses", [{}])[0]
        message = found.get("state", {}).get("waiting", {}).get("message", "")
        return "leads out of its volume" in message

    await eventually(refused)
    await client.delete(POD_RUNS, "link", "default", grace_seconds=0)


async def test_missing_host_path_holds_the_pod_and_says_so(client: Client, tmp_path: Path) -> None:
    volume = {"name": "h", "hostPath": {"path": str(tmp_path / "x"), "type": "Directory"}}
    await client.create(POD_RUNS, pod("held", "exit 0", volumes=[volume]))

    async def said() -> bool:
        return "FailedMount" in await reasons(client, "held")

    await eventually(said)
    (tmp_path / "x").mkdir()
    await phase(client, "held", "Succeeded")


async def test_runs_as_the_user_that_it_asks_for(client: Client, node: ProcessNode) -> None:
    needs_root()
    security = {"runAsUser": 4711, "runAsGroup": 4712, "fsGroup": 4713}
    await client.create(
        POD_RUNS,
        pod(
            "user",
            "id -u; id -g; id -G; touch /v/mine && echo written",
            securityContext=security,
            volumes=[{"name": "v", "emptyDir": {}}],
            container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        ),
    )
    await phase(client, "user", "Succeeded")
    assert read_log(node, "user") == "4711\n4712\n4712 4713\nwritten\n"
    assert os.geteuid() == 0


async def test_token_of_the_service_account_opens_the_server(
    client: Client, node: ProcessNode
) -> None:
    account = {"metadata": {"name": "robot"}}
    await client.request(
        "POST", "/api/v1/namespaces/default/serviceaccounts", body=msgspec.json.encode(account)
    )
    source = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}
    read = (
        "import json, os, ssl, urllib.request as u;"
        "t = open('/var/run/secrets/tokens/token').read();"
        "host, port = (os.environ['KUBERNETES_SERVICE_' + x] for x in ('HOST', 'PORT'));"
        "r = u.Request(f'https://{host}:{port}/apis/authentication.k8s.io/v1/selfsubjectreviews',"
        " b'{}', {'Authorization': 'Bearer ' + t, 'Content-Type': 'application/json'});"
        "c = ssl._create_unverified_context();"
        "print(json.load(u.urlopen(r, context=c))['status']['userInfo']['username'])"
    )
    await client.create(
        POD_RUNS,
        pod(
            "robot",
            ["python", "-c", read],
            serviceAccountName="robot",
            volumes=[{"name": "t", "projected": {"sources": [source]}}],
            container={"volumeMounts": [{"name": "t", "mountPath": "/var/run/secrets/tokens"}]},
        ),
    )
    await phase(client, "robot", "Succeeded")
    assert read_log(node, "robot") == "system:serviceaccount:default:robot\n"


async def test_files_follow_the_config_map(client: Client, node: ProcessNode) -> None:
    await client.create(
        CONFIG_MAPS, {"metadata": {"name": "moving"}, "data": {"f": "old"}}, "default"
    )
    script = "cat /c/f; echo; until grep -q new /c/f; do sleep 0.02; done; cat /c/f; ls /c"
    await client.create(
        POD_RUNS,
        pod(
            "moving",
            script,
            volumes=[{"name": "c", "configMap": {"name": "moving"}}],
            container={"volumeMounts": [{"name": "c", "mountPath": "/c"}]},
        ),
    )
    await phase(client, "moving", "Running")
    await client.patch(CONFIG_MAPS, "moving", {"data": {"f": "new\n", "g": ""}}, "default")
    await phase(client, "moving", "Succeeded", deadline=8)
    assert read_log(node, "moving") == "old\nnew\nf\ng\n"


async def test_kubernetes_client_finds_its_account_in_the_pod(
    client: Client, node: ProcessNode
) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    shut = {"metadata": {"name": "shut"}, "automountServiceAccountToken": False}
    await client.request("POST", accounts, body=msgspec.json.encode(shut))
    read = (
        "from kubernetes import client, config;"
        "config.load_incluster_config();"
        "me = client.AuthenticationV1Api().create_self_subject_review({});"
        "where = open(config.incluster_config.SERVICE_CERT_FILENAME[:-6] + 'namespace').read();"
        "print(me.status.user_info.username, where)"
    )
    refused = read.replace("config.load", "\ntry: config.load", 1).replace(
        "config();me",
        "config()\nexcept config.ConfigException: print('no token'); raise SystemExit\nme",
        1,
    )
    spied = "import pathlib; print([*pathlib.Path('/dev/shm').glob('lockstep-*/*')]);" + read
    await client.create(POD_RUNS, pod("own", ["python", "-c", spied]))
    await client.create(POD_RUNS, pod("shut", ["python", "-c", refused], serviceAccountName="shut"))
    asks = {"automountServiceAccountToken": False}
    await client.create(POD_RUNS, pod("none", ["python", "-c", refused], **asks))
    for name in ("own", "shut", "none"):
        await phase(client, name, "Succeeded", "Failed")
    assert f"{node.data}/pods" not in Path("/proc/mounts").read_text()
    assert read_log(node, "own") == "[]\nsystem:serviceaccount:default:default default\n"
    assert read_log(node, "shut") == read_log(node, "none") == "no token\n"
