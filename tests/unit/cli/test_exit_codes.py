"""The exit code tells what was given wrongly from what could not be done."""

from __future__ import annotations

import base64
import gc
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.cli.main import main

JOB = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "j"}}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"leaf": 5}}}
FILES = {
    "broken.yaml": "a: }",
    "job.json": json.dumps(JOB),
    "node.json": json.dumps(NODE),
    "unreachable": "",
    "uncertain": "",
}


def kubeconfig(**user: str) -> str:
    return json.dumps(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "u", "user": user}],
        }
    )


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    junk = base64.b64encode(b"no certificate").decode()
    (tmp_path / "unreachable").write_text(kubeconfig())
    (tmp_path / "uncertain").write_text(
        kubeconfig(**{"client-certificate-data": junk, "client-key-data": junk})
    )
    monkeypatch.chdir(tmp_path)
    collections = gc.get_threshold()
    yield
    gc.set_threshold(*collections)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("code", "says", "command"),
    [
        (2, "none.yaml: No such file", "submit -f none.yaml"),
        (2, "line 1: not YAML", "submit -f broken.yaml"),
        (2, "spec: Required value", "submit -f job.json --dry-run"),
        (2, "spec: Required value", "simulate --cluster 2x8 --jobs job.json"),
        (2, "$.metadata.labels[leaf]", "simulate --cluster node.json --jobs job.json"),
        (2, "--image does not go with", "manifests --image x crds"),
        (2, "No such command 'ps'. Did you mean 'list'?", "ps"),
        (2, "Did you mean 'list jobs'?", "jobs"),
        (2, "Did you mean 'delete'?", "cancel x"),
        (2, "No such option '--nodes'. Did you mean '--workers'?", "submit plain --nodes 2"),
        (2, "Did you mean '--gpus', '--cpu'", "submit plain --gpu 2"),
        (2, "No such option: --nodes", "queue list --nodes"),
        (2, "no kubeconfig at none", "list --kubeconfig none"),
        (2, "certificates of the kubeconfig", "list --kubeconfig uncertain"),
        (1, "127.0.0.1", "list --kubeconfig unreachable"),
    ],
)
def test_a_usage_error_differs_from_a_failed_action(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: int,
    says: str,
    command: str,
) -> None:
    monkeypatch.setattr("sys.argv", ["lockstep", *command.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (code, "")
    assert says in printed.err
