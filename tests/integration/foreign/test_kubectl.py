"""kubectl's daily round on the embedded API server."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from tests.support.apiserver import ApiServer
from tests.support.kubectl import Kubectl
from tests.support.process_node import ProcessNode
from tests.support.waiting import eventually_sync
from tools.deploy.generate import CHART

from lockstep.compat.etoperator.kinds import JOB

CRDS = CHART / "files" / "crds.yaml"

# What kubectl create makes itself and sends as protobuf, and what must come out of it.
CREATED: list[tuple[list[str], dict[str, Any]]] = [
    (["configmap", "c", "--from-literal=a=b"], {"data": {"a": "b"}}),
    (["secret", "generic", "s", "--from-literal=a=b"], {"data": {"a": "Yg=="}, "type": "Opaque"}),
    (["namespace", "n"], {"spec": {"finalizers": ["kubernetes"]}}),
    (["serviceaccount", "robot"], {"kind": "ServiceAccount"}),
    (["quota", "q", "--hard=cpu=1,pods=2"], {"spec": {"hard": {"cpu": "1", "pods": "2"}}}),
    (["priorityclass", "high", "--value=100"], {"value": 100}),
    (
        ["role", "reader", "--verb=get,list", "--resource=pods"],
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]},
    ),
    (
        ["pdb", "budget", "--selector=app=x", "--min-available=50%"],
        {"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "x"}}}},
    ),
]


@pytest.mark.parametrize(("args", "expected"), CREATED, ids=[c[0][0] for c in CREATED])
def test_create(kubectl: Kubectl, args: list[str], expected: dict[str, Any]) -> None:
    assert "created" in kubectl("create", *args)
    name = next(a for a in args[1:] if not a.startswith("-") and a != "generic")
    found = json.loads(kubectl("get", args[0], name, "-o", "json"))
    for field, value in expected.items():
        assert found[field] == value
    assert "deleted" in kubectl("delete", args[0], name)


def test_a_deployment_is_created_scaled_patched_and_labelled(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2")
    kubectl("scale", "deployment", "web", "--replicas=5")
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "5"
    kubectl("patch", "deployment", "web", "-p", '{"spec":{"template":{"spec":{"containers":'
            '[{"name":"nginx","env":[{"name":"A","value":"b"}]}]}}}}')  # fmt: skip
    (container,) = json.loads(kubectl("get", "deploy", "web", "-o", "json"))["spec"]["template"][
        "spec"
    ]["containers"]
    assert (container["image"], container["env"]) == ("nginx", [{"name": "A", "value": "b"}])
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    kubectl("label", "deployment", "web", "tier=front")
    assert "web" in kubectl("get", "deploy", "-l", "tier in (front)")
    kubectl("annotate", "deployment", "web", "why=because")
    assert "because" in kubectl("describe", "deployment", "web")
    kubectl("patch", "deployment", "web", "--type=json",
            "-p", '[{"op":"remove","path":"/metadata/labels/tier"}]')  # fmt: skip
    assert "web" not in kubectl("get", "deploy", "-l", "tier=front")
    kubectl("delete", "deployment", "web")


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "b"}},
    "spec": {"containers": [{"name": "main", "image": "x"}]},
}


def test_apply_creates_changes_prunes_and_leaves_alone(kubectl: Kubectl) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cfg"}}
    assert "created" in kubectl("apply", "-f", "-", stdin={**config, "data": {"a": "1", "b": "2"}})
    kubectl("patch", "cm", "cfg", "--type=merge", "-p", '{"data":{"c":"theirs"}}')
    assert "configured" in kubectl("apply", "-f", "-", stdin={**config, "data": {"a": "3"}})
    assert json.loads(kubectl("get", "cm", "cfg", "-o", "json"))["data"] == {
        "a": "3",
        "c": "theirs",
    }
    assert "unchanged" in kubectl("apply", "-f", "-", stdin={**config, "data": {"a": "3"}})


def test_server_side_apply_knows_owners(kubectl: Kubectl) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned"}}
    apply = ["apply", "--server-side", "-f", "-"]
    kubectl(*apply, "--field-manager=one", stdin={**config, "data": {"a": "1"}})
    error = kubectl(*apply, "--field-manager=two", stdin={**config, "data": {"a": "2"}}, fails=True)
    assert 'conflict with "one"' in error
    assert ".data.a" in error
    kubectl(
        *apply, "--field-manager=two", "--force-conflicts", stdin={**config, "data": {"a": "2"}}
    )
    kubectl(*apply, "--field-manager=one", stdin=config)
    assert json.loads(kubectl("get", "cm", "owned", "-o", "json"))["data"] == {"a": "2"}


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        ({**POD, "spec": {"container": []}}, 'unknown field "spec.container"'),
        ({**POD, "spec": {"containers": []}}, "spec.containers: Required value"),
        ({**POD, "metadata": {"name": "Not_Valid"}}, "Invalid value"),
        (
            {**POD, "spec": {"containers": [{"name": "a", "image": "x"}] * 2}},
            "spec.containers[1].name: Duplicate value",
        ),
        ({"apiVersion": "v1", "kind": "Podd", "metadata": {"name": "x"}}, "no matches for kind"),
    ],
)
def test_bad_input_is_refused_with_the_field(
    kubectl: Kubectl, obj: dict[str, Any], said: str
) -> None:
    assert said in kubectl("create", "-f", "-", stdin=obj, fails=True)


def test_our_kinds_are_served_explained_and_checked(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", str(CRDS))
    kubectl("wait", "--for=condition=Established", "crd/gangs.lockstep.dev", "--timeout=20s")
    names = kubectl("api-resources", "--api-group=lockstep.dev", "-o", "name").split()
    defined = [crd["spec"]["names"]["plural"] for crd in yaml.safe_load_all(CRDS.read_text())]
    assert sorted(n.partition(".")[0] for n in names) == sorted(defined)
    assert "minMember\t<integer>" in kubectl("explain", "gang.spec")
    assert "Short form for a single group" in kubectl("explain", "gang.spec.minMember")
    gang = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "Gang", "metadata": {"name": "g"}}
    error = kubectl("create", "-f", "-", stdin={**gang, "spec": {"minMember": 0}}, fails=True)
    assert "spec.minMember" in error
    error = kubectl("create", "-f", "-", stdin={**gang, "spec": {}}, fails=True)
    assert "exactly one of minMember" in error
    kubectl("create", "-f", "-", stdin={**gang, "spec": {"minMember": 2}})
    assert json.loads(kubectl("get", "gang", "g", "-o", "json"))["spec"]["queue"] == "default"
    assert "MEMBERS" in kubectl("get", "gangs")


def test_a_name_that_two_groups_have_is_ours(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", str(CRDS))
    kubectl("apply", "-f", "-", stdin=JOB.manifest("et-operator"))
    for group in ("lockstep.dev", "kai.alibabacloud.com"):
        crd = f"crd/trainingjobs.{group}"
        kubectl("wait", "--for=condition=Established", crd, "--timeout=20s")
    pod = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
    ours = {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "digits"},
        "spec": {"framework": "plain", "roles": [{"name": "worker", "template": pod}]},
    }
    kubectl("create", "-f", "-", stdin=ours)
    for word in ("trainingjob", "trainingjobs", "tj"):
        found = kubectl("get", word, "digits", "-o", "name").strip()
        assert found == "trainingjob.lockstep.dev/digits"


def test_watching_shows_changes(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "watched")
    with kubectl.running("get", "cm", "watched", "-w", "-o", "jsonpath={.data.x}{'\\n'}") as watch:
        assert watch.stdout is not None
        watch.stdout.readline()
        kubectl("patch", "cm", "watched", "--type=merge", "-p", '{"data":{"x":"seen"}}')
        assert watch.stdout.readline().strip() == "seen"


@pytest.mark.parametrize(
    ("args", "answer"),
    [
        (["create", "pods"], "yes"),
        (["create", "pods", "--as=system:serviceaccount:default:nobody"], "no"),
        (["get", "pods", "--as=reader", "--as-group=system:masters"], "yes"),
    ],
)
def test_auth_can_i(kubectl: Kubectl, args: list[str], answer: str) -> None:
    done = kubectl.run("auth", "can-i", *args)
    assert (done.stdout.strip(), done.returncode) == (answer, int(answer == "no")), done.stderr


def test_namespaces_go_with_what_is_in_them(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "gone")
    kubectl("-n", "gone", "create", "configmap", "inside")
    kubectl("delete", "namespace", "gone", "--timeout=30s")
    assert "NotFound" in kubectl("get", "namespace", "gone", fails=True)
    assert "inside" not in kubectl("get", "cm", "-A")


@pytest.fixture(scope="module")
def node(kubectl_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    running = ProcessNode(kubectl_server, tmp_path_factory.mktemp("node")).start()
    yield running
    running.stop()


def test_a_pod_runs_is_described_and_its_logs_are_followed(
    kubectl: Kubectl, node: ProcessNode
) -> None:
    script = "echo one; sleep 1; echo two"
    container = {"name": "main", "image": "none", "command": ["sh", "-c", script]}
    spec = {"nodeName": node.name, "restartPolicy": "Never", "containers": [container]}
    kubectl("create", "-f", "-", stdin={**POD, "metadata": {"name": "talks"}, "spec": spec})
    kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/talks", "--timeout=20s")
    assert kubectl("logs", "-f", "talks").split() == ["one", "two"]
    kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/talks", "--timeout=20s")
    assert kubectl("logs", "talks", "--tail=1").split() == ["two"]
    row = kubectl("get", "pod", "talks", "-o", "wide").splitlines()[1]
    assert "Completed" in row
    assert node.name in row
    described = kubectl("describe", "pod", "talks")
    assert "Exit Code:" in described
    assert "Events:" in described
    kubectl("delete", "pod", "talks", "--timeout=20s")
    eventually_sync(lambda: "talks" not in kubectl("get", "pods"), what="the pod is gone")


def test_the_yaml_of_an_object_can_be_sent_back(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "round", "--from-literal=a=b")
    text = kubectl("get", "cm", "round", "-o", "yaml", "--show-managed-fields")
    assert "managedFields" in yaml.safe_load(text)["metadata"]
    assert "replaced" in kubectl("replace", "-f", "-", stdin=text.replace("a: b", "a: c"))
    assert "the object has been modified" in kubectl(
        "replace", "-f", "-", stdin=text.replace("a: b", "a: d"), fails=True
    )
