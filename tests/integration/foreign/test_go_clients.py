"""Typed clients in Go, which speak protobuf, on the embedded API server."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.apiserver import Answer, ApiServer
from tests.support.waiting import eventually_sync, stretched
from tools.clients.build import PROGRAM

Json = dict[str, Any]

GADGETS = "/apis/example.org/v1/namespaces/default/gadgets"
RECORDED = Path(__file__).parents[2] / "unit" / "apiserver" / "recorded" / "builtin.json.gz"
PROTOBUF = "application/vnd.kubernetes.protobuf"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def program() -> str:
    found = PROGRAM.find()
    if found is None:
        pytest.skip("no clients in Go: run `make clients`")
    return str(found)


def environment(server: ApiServer) -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": str(server.kubeconfig)}


@pytest.fixture(scope="module")
def controller(shared_server: ApiServer) -> Iterator[ApiServer]:
    """A server with a manager of controller-runtime that has installed its own CRD."""
    process = subprocess.Popen(
        [program(), "controller"],
        env=environment(shared_server),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "installed\n"
    yield shared_server
    process.terminate()
    assert process.wait(20) == 0


def gadget(server: ApiServer, name: str, **spec: Any) -> Answer:
    meta = {"name": name}
    body = {"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": meta, "spec": spec}
    return server.request("POST", GADGETS, body)


def size_of(server: ApiServer, name: str) -> str | None:
    """Return what the controller has written for a gadget."""
    found = server.request("GET", f"/api/v1/namespaces/default/configmaps/{name}")
    return str(found.json["data"]["size"]) if found.status == 200 else None


def test_a_manager_installs_its_crd_and_reconciles(controller: ApiServer) -> None:
    assert gadget(controller, "one", size=4, weights={"a": 1}).status == 201
    eventually_sync(lambda: size_of(controller, "one") == "4", what="the gadget has its map")
    scale = {"spec": {"replicas": 6}}
    patched = controller.request(
        "PATCH", f"{GADGETS}/one/scale", scale, content_type="application/merge-patch+json"
    )
    assert patched.status == 200
    eventually_sync(lambda: size_of(controller, "one") == "6", what="the map follows the scale")
    seen = controller.request("GET", f"{GADGETS}/one").json
    eventually_sync(
        lambda: controller.request("GET", f"{GADGETS}/one").json["status"] == {"size": 6},
        what="the status is written",
    )
    assert seen["spec"] == {"size": 6, "weights": {"a": 1}}


def test_a_schema_sent_in_protobuf_holds(controller: ApiServer) -> None:
    assert gadget(controller, "default").json["spec"] == {"size": 3}
    for wrong in ({"size": 0}, {"names": [1]}, {"weights": {"a": "b"}}):
        assert gadget(controller, "wrong", **wrong).status == 422


def test_a_quota_counts_custom_resources(controller: ApiServer) -> None:
    space = "/api/v1/namespaces"
    assert controller.request("POST", space, {"metadata": {"name": "few"}}).status == 201
    quota = {
        "metadata": {"name": "few"},
        "spec": {"hard": {"count/gadgets.example.org": "1"}},
    }
    assert controller.request("POST", f"{space}/few/resourcequotas", quota).status == 201
    eventually_sync(
        lambda: (
            "used" in controller.request("GET", f"{space}/few/resourcequotas/few").json["status"]
        ),
        what="the quota is counted",
    )
    path = "/apis/example.org/v1/namespaces/few/gadgets"
    made = [
        controller.request(
            "POST",
            path,
            {"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": {"name": name}},
        )
        for name in ("a", "b")
    ]
    assert [answer.status for answer in made] == [201, 403]
    assert "exceeded quota: few, requested: count/gadgets.example.org=1" in made[1].json["message"]


def test_every_kind_reads_the_same_in_protobuf(controller: ApiServer) -> None:
    create_what_was_recorded(controller)
    done = subprocess.run(
        [program(), "compare"],
        env=environment(controller),
        capture_output=True,
        text=True,
        timeout=stretched(60),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    resources, objects = (int(word) for word in done.stdout.split() if word.isdigit())
    assert resources >= 54
    assert objects >= 200


def create_what_was_recorded(server: ApiServer) -> None:
    """Create what Kubernetes would store, so that there are objects of many kinds and fields."""
    found = server.request("GET", "/apis", headers={"Accept": AGGREGATED}).json["items"]
    found += server.request("GET", "/api", headers={"Accept": AGGREGATED}).json["items"]
    paths = {}
    for group in found:
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            for r in version["resources"]:
                api = f"{name}/{version['version']}" if name else version["version"]
                root = "/apis" if name else "/api"
                inside = "/namespaces/default" if r["scope"] == "Namespaced" else ""
                paths[api, r["responseKind"]["kind"]] = f"{root}/{api}{inside}/{r['resource']}"
    cases: list[Json] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    for number, case in enumerate(cases):
        if obj := case["answer"].get("object"):
            named = {"name": f"recorded-{number}"}
            spec = {key: value for key, value in obj.items() if key != "status"}
            server.request(
                "POST", paths[obj["apiVersion"], obj["kind"]], {**spec, "metadata": named}
            )


@pytest.mark.parametrize(
    ("path", "accept", "expected"),
    [
        ("/api/v1/pods", "text/html", 406),
        ("/apis/example.org/v1/gadgets", PROTOBUF, 406),
        ("/apis/example.org/v1/gadgets", f"{PROTOBUF},*/*", "application/json"),
        (
            "/apis/example.org/v1/gadgets",
            f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            PROTOBUF,
        ),
        ("/api/v1/pods", f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1", 406),
        ("/api/v1/pods?watch=1&timeoutSeconds=1", "application/yaml", 406),
        ("/api/v1/pods?watch=1&timeoutSeconds=1", PROTOBUF, f"{PROTOBUF};stream=watch"),
        ("/apis", PROTOBUF, PROTOBUF),
        ("/api/v1", PROTOBUF, PROTOBUF),
        ("/version", PROTOBUF, "application/json"),
        ("/api", AGGREGATED, AGGREGATED),
        ("/apis", AGGREGATED.replace("application/json", PROTOBUF), f"{PROTOBUF};g="),
    ],
)
def test_answers_have_the_form_that_kubernetes_gives(
    controller: ApiServer, path: str, accept: str, expected: int | str
) -> None:
    answer = controller.request("GET", path, headers={"Accept": accept})
    if isinstance(expected, int):
        assert answer.status == expected
        assert b"NotAcceptable" in answer.body
    else:
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith(expected)


def test_a_failure_is_told_in_protobuf_too(controller: ApiServer) -> None:
    answer = controller.request("GET", "/api/v1/pods/none", headers={"Accept": PROTOBUF})
    assert answer.status == 404
    assert answer.headers["Content-Type"] == PROTOBUF
    assert answer.body.startswith(b"k8s\x00")


def test_aggregated_discovery_is_sent_anew_only_when_it_has_changed(
    controller: ApiServer,
) -> None:
    first = controller.request("GET", "/apis", headers={"Accept": AGGREGATED})
    assert (first.headers["Vary"], first.headers["Cache-Control"]) == ("Accept", "public")
    etag = first.headers["ETag"]
    again = {"Accept": AGGREGATED, "If-None-Match": etag}
    assert controller.request("GET", "/apis", headers=again).status == 304
    assert controller.request("GET", "/api", headers=again).status == 200
