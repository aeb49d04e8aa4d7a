"""A manifest is checked before anything is sent; an error names field, value and remedy."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lockstep.cli.failure import BadInput
from lockstep.cli.load import Document, check, documents, problems

POD = {"containers": [{"name": "main", "image": "none", "command": ["true"]}]}
WORKER = {"name": "worker", "replicas": 2, "template": {"spec": POD}}


def job(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "j"},
        "spec": {"framework": "plain", "roles": [WORKER], **spec},
    }


def kind(name: str, **spec: Any) -> dict[str, Any]:
    return {**job(), "kind": name, "spec": spec}


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        (
            job(framework="tf"),
            'spec.framework: Unsupported value: "tf": supported values: "byteps"',
        ),
        (job(queu="a"), "spec.queu: unknown field; did you mean queue?"),
        (job(roles=[]), "spec.roles"),
        (
            job(roles=[{**WORKER, "replicas": "two"}]),
            'spec.roles[0].replicas: given "two"; write an integer',
        ),
        (job(maxWait="soon"), "spec.maxWait"),
        (job(roles=[{**WORKER, "replica": 1}]), "spec.roles[0].replica: unknown field; did you"),
        (
            job(roles=[{**WORKER, "min": 3}]),
            "spec.roles[0].min: given 3; must not exceed replicas (2)",
        ),
        (job(framework="mpi"), "launcher"),
        (
            job(roles=[{**WORKER, "template": {"spec": {"containers": "main"}}}]),
            "spec.roles[0].template",
        ),
        (
            job(roles=[{**WORKER, "template": {"spec": {**POD, "nodeSelector": {"zone": 5}}}}]),
            "spec.roles[0].template.spec.nodeSelector[zone]: given 5; write a string",
        ),
        (
            {**job(), "metadata": {"name": "j", "labels": {"lockstep.dev/queue": True}}},
            "metadata.labels[lockstep.dev/queue]: given true; write a string",
        ),
        (kind("Gang", minMember=0), "spec.minMember: Invalid value: 0"),
        (kind("Topology"), "spec.tiers: Required value"),
        (
            kind("Topology", tiers=[{"name": "a", "label": "x"}, {"name": "a", "label": "y"}]),
            "spec.tiers: Invalid value: each must have a name of its own",
        ),
        (kind("Queue", limit={"cpu": "many"}), 'spec.limit.cpu: Invalid value: "many"'),
        (kind("Queue", guaranteed={"cpu": -1}), "spec.guaranteed.cpu: Invalid value: -1"),
        (kind("Queue", lendingLimit={"cpu": "-1"}), 'spec.lendingLimit.cpu: Invalid value: "-1"'),
        (kind("Queue", borrowingLimit={"cpu": "1 Gi"}), "spec.borrowingLimit.cpu: Invalid value"),
        (kind("Gangs", minMember=1), "kind: given 'Gangs'; allowed are"),
        ({**kind("Gang", minMember=1), "apiVersion": "v1"}, "apiVersion: given 'v1'; Gang is in"),
        ({"apiVersion": "v1", "kind": "Pod", "spec": {"container": []}}, "spec.container: unknown"),
        (
            {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"args": [["a"]]}]}},
            'spec.containers[0].args[0]: given ["a"]; write a string',
        ),
    ],
)
def test_what_is_wrong_is_named(obj: dict[str, Any], said: str) -> None:
    assert any(said in line for line in problems(obj)), problems(obj)
    with pytest.raises(BadInput) as failure:
        check(Document(obj, "x.yaml, document 1"))
    assert "x.yaml, document 1" in str(failure.value)


@pytest.mark.parametrize(
    "obj",
    [
        job(),
        job(maxWait="2h", topology={"required": "leaf"}, parallelism={"tensor": 2}),
        kind("Gang", minMember=4),
        kind("Queue", guaranteed={"nvidia.com/gpu": 8}, weight=2),
        kind("Topology", tiers=[{"name": "leaf", "label": "leaf"}]),
        {"apiVersion": "example.com/v1", "kind": "Foreign", "spec": {"any": "thing"}},
    ],
)
def test_what_is_right_passes(obj: dict[str, Any]) -> None:
    assert problems(obj) == []


def test_several_documents_and_lists_are_unpacked(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    both = {"apiVersion": "v1", "kind": "List", "items": [job(), kind("Gang", minMember=1)]}
    file.write_text(yaml.safe_dump_all([both, None, kind("Queue")]))
    assert [(d.obj["kind"], d.origin) for d in documents(file)] == [
        ("TrainingJob", f"{file}, document 1"),
        ("Gang", f"{file}, document 1"),
        ("Queue", f"{file}, document 3"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: }", "line 1: not YAML"),
        ("", "holds no object"),
        ("[]", "is a list, not an object"),
        ("kind: Gang", "apiVersion is missing"),
    ],
)
def test_what_is_no_manifest_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(BadInput, match=said) as failure:
        documents(file)
    assert str(file) in str(failure.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.yaml: No such file"):
        documents(tmp_path / "none.yaml")


@pytest.mark.parametrize("metadata", ["queue", 3, [None], True])
def test_metadata_that_is_no_object_is_said(metadata: Any) -> None:
    obj = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "Queue", "metadata": metadata, "spec": {}}
    with pytest.raises(BadInput, match="Queue is not valid") as failure:
        check(Document(obj, "q.yaml"))
    assert "metadata" in str(failure.value)
