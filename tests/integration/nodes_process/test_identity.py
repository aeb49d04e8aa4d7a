"""Which nodes the API server sends logs and commands to."""

from __future__ import annotations

from pathlib import Path

from tests.support.apiserver import ApiServer
from tests.support.process_node import ProcessNode, pod
from tests.support.waiting import eventually_sync

PODS = "/api/v1/namespaces/default/pods"


def test_a_node_that_signs_its_own_certificate_is_not_asked(
    server: ApiServer, tmp_path: Path
) -> None:
    node = ProcessNode(server, tmp_path / "node", trusted=False).start()
    try:
        assert server.request("POST", PODS, pod("says", "echo secret")).status == 201
        eventually_sync(
            lambda: server.request("GET", f"{PODS}/says").json["status"]["phase"] == "Succeeded",
            what="the pod has run",
        )
        for path, headers in (
            ("log", {}),
            ("exec?command=true", {"Connection": "Upgrade", "Upgrade": "websocket"}),
        ):
            answer = server.request("GET", f"{PODS}/says/{path}", headers=headers)
            assert answer.status == 500
            assert "not of this cluster's authority" in answer.json["message"]
    finally:
        node.stop()
