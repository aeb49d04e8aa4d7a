"""Commands in containers and ports of pods, as other people's programs ask for them."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import kr8s.asyncio
import kubernetes
import kubernetes.stream
import lightkube
import pytest
from tests.support.apiserver import ApiServer
from tests.support.kube_apiserver import free_ports
from tests.support.kubectl import Kubectl
from tests.support.process_node import ProcessNode, pod
from tests.support.waiting import eventually, stretched

pytestmark = [
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

# Answers each connection with what it has sent, in capitals.
SERVER = (
    "import socketserver\n"
    "class Echo(socketserver.StreamRequestHandler):\n"
    "    def handle(self): self.wfile.write(self.rfile.readline().upper())\n"
    "socketserver.TCPServer(('', {port}), Echo).serve_forever()\n"
)


@pytest.fixture(scope="module")
def running(
    kubectl: Kubectl, kubectl_server: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubectl]:
    """A server with a node, on which the pod ``talks`` says a word again and again."""
    node = ProcessNode(kubectl_server, tmp_path_factory.mktemp("node")).start()
    script = "while sleep 0.2; do echo word; done"
    made = kubectl_server.request("POST", "/api/v1/namespaces/default/pods", pod("talks", script))
    assert made.status == 201
    kubectl("wait", "--for=condition=Ready", "pod/talks", "--timeout=20s")
    yield kubectl
    node.stop()


def test_kubectl_runs_a_command_and_ends_as_it_does(running: Kubectl) -> None:
    done = running.run("exec", "talks", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.stdout, done.returncode) == ("out\n", 3)
    assert done.stderr.startswith("err\n")
    assert "exit code 3" in done.stderr


def test_kubectl_gives_input_and_its_end(running: Kubectl) -> None:
    assert running("exec", "-i", "talks", "--", "wc", "-c", stdin="x" * 200_000) == "200000\n"


def test_kubectl_copies_files_there_and_back(running: Kubectl, tmp_path: Path) -> None:
    data = os.urandom(3 << 20)
    (tmp_path / "sent").write_bytes(data)
    there = tmp_path / "there"
    running("cp", str(tmp_path / "sent"), f"talks:{there}")
    running("cp", f"talks:{there}", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == data


def test_kubectl_has_a_terminal(running: Kubectl) -> None:
    own, other = pty.openpty()
    process = subprocess.Popen(
        [running.program, "exec", "-it", "talks", "--", "sh", "-c", "test -t 0 && tty && exit 4"],
        env={**os.environ, "KUBECONFIG": str(running.kubeconfig)},
        stdin=other,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    output, _ = process.communicate(timeout=stretched(30))
    os.close(own)
    os.close(other)
    assert b"/dev/pts/" in output
    assert process.returncode == 4


def test_kubectl_attaches_to_what_a_container_says(running: Kubectl) -> None:
    with running.running("attach", "talks") as attached:
        assert attached.stdout is not None
        assert attached.stdout.readline() == "word\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["exec", "talks", "--", "no-such-program"], "cannot run 'no-such-program'"),
        (["exec", "nobody", "--", "true"], '"nobody" not found'),
        (["exec", "talks", "-c", "other", "--", "true"], "container other is not valid for pod"),
    ],
)
def test_kubectl_is_told_what_cannot_be(running: Kubectl, args: list[str], said: str) -> None:
    assert said in running(*args, fails=True)


def test_who_may_only_read_pods_runs_nothing_in_them(running: Kubectl) -> None:
    running("create", "clusterrole", "peeps", "--verb=get", "--resource=pods,pods/exec")
    running("create", "clusterrolebinding", "peeps", "--clusterrole=peeps", "--user=jane")
    refused = running("exec", "talks", "--as=jane", "--", "true", fails=True)
    assert 'cannot create resource "pods/exec"' in refused


def test_the_official_client_runs_a_command(running: Kubectl) -> None:
    api = kubernetes.config.new_client_from_config(str(running.kubeconfig))
    core = kubernetes.client.CoreV1Api(api)
    talk = kubernetes.stream.stream(
        core.connect_get_namespaced_pod_exec,
        "talks",
        "default",
        command=["sh", "-c", "read word; echo $word; exit 2"],
        stdin=True,
        stdout=True,
        stderr=True,
        _preload_content=False,
    )
    talk.write_stdin("hello\n")
    talk.run_forever(timeout=stretched(20))
    assert talk.read_stdout() == "hello\n"
    assert talk.returncode == 2


def test_lightkube_runs_a_command(running: Kubectl) -> None:
    config = lightkube.KubeConfig.from_file(str(running.kubeconfig))
    done = lightkube.Client(config=config).exec(
        "talks", namespace="default", command=["echo", "hi"], stdout=True
    )
    assert done.stdout == "hi\n"


async def test_kr8s_runs_a_command_and_reaches_a_port(
    running: Kubectl, kubectl_server: ApiServer
) -> None:
    api = await kr8s.asyncio.api(kubeconfig=str(running.kubeconfig))
    talks = await kr8s.asyncio.objects.Pod.get("talks", api=api)
    assert (await talks.exec(["echo", "hi"])).stdout == b"hi\n"
    (port,) = free_ports(1)
    echo = pod("echo", ["python3", "-c", SERVER.format(port=port)])
    assert kubectl_server.request("POST", "/api/v1/namespaces/default/pods", echo).status == 201
    running("wait", "--for=condition=Ready", "pod/echo", "--timeout=20s")
    server = await kr8s.asyncio.objects.Pod.get("echo", api=api)
    async with server.portforward(port, local_port=free_ports(1)[0]) as local:
        await eventually(lambda: answers(local, b"shout\n", b"SHOUT\n"), what="an answer")
    running("delete", "pod", "echo", "--grace-period=0", "--force")


@pytest.mark.parametrize("sockets", ["true", "false"], ids=["in a WebSocket", "in SPDY"])
async def test_kubectl_forwards_a_port(
    running: Kubectl, kubectl_server: ApiServer, sockets: str
) -> None:
    port, closed = free_ports(2)
    name = f"forward-{sockets}"
    echo = pod(name, ["python3", "-c", SERVER.format(port=port)])
    assert kubectl_server.request("POST", "/api/v1/namespaces/default/pods", echo).status == 201
    running("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=20s")
    kubectl = replace(running, more={"KUBECTL_PORT_FORWARD_WEBSOCKETS": sockets})
    with kubectl.running("port-forward", f"pod/{name}", f":{port}", f":{closed}") as forwarding:
        assert forwarding.stdout is not None
        said = [await asyncio.to_thread(forwarding.stdout.readline) for _ in range(4)]
        open_at, closed_at = (
            next(int(line.split("127.0.0.1:")[1].split()[0]) for line in said if f"-> {p}" in line)
            for p in (port, closed)
        )
        await eventually(lambda: answers(open_at, b"shout\n", b"SHOUT\n"), what="an answer")
        long = b"x" * 300_000 + b"\n"
        several = [answers(open_at, long, long.upper()) for _ in range(5)]
        assert await asyncio.gather(*several) == [True] * 5
        assert await answers(open_at, b"again\n", b"AGAIN\n")
        # kubectl gives up all of its ports once it is told that one cannot be reached.
        assert await answers(closed_at, b"shout\n", b"")
        assert await asyncio.to_thread(forwarding.wait, 20) == 1
    running("delete", "pod", name, "--grace-period=0", "--force")


async def answers(port: int, line: bytes, expected: bytes) -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(line)
    answer = await reader.read()
    writer.close()
    return answer == expected
