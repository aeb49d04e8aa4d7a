"""Pods that run: their ends, environment, logs, restarts and stopping."""

from __future__ import annotations

import http.client
import os
import re
import time
from pathlib import Path

import pytest
from tests.support.process_node import (
    ProcessNode,
    gone,
    needs_cgroups,
    needs_mounts,
    phase,
    pod,
    read_log,
    reasons,
    status,
)
from tests.support.waiting import eventually

from lockstep.api.core import CONFIG_MAPS, LEASES, NODES, SECRETS
from lockstep.kube.client import Client
from lockstep.nodes.process.spec import POD_RUNS


async def test_node_registers_with_what_the_machine_has(client: Client) -> None:
    node = await client.get(NODES, "here")
    assert node.metadata.labels["lockstep.dev/node"] == "process"
    assert int(node.status.capacity["cpu"]) >= 1
    assert any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)
    lease = await client.get(LEASES, "here", "kube-node-lease")
    assert lease.spec.holder_identity == "here"


@pytest.mark.parametrize(
    ("script", "wanted", "code", "reason"),
    [
        ("exit 0", "Succeeded", 0, "Completed"),
        ("exit 7", "Failed", 7, "Error"),
        ("kill -9 $$$$", "Failed", 137, "Error"),
        (["no-such-command"], "Failed", 128, "StartError"),
    ],
)
async def test_end_of_the_process_is_the_end_of_the_pod(
    client: Client, script: str, wanted: str, code: int, reason: str
) -> None:
    name = f"end-{code}"
    await client.create(POD_RUNS, pod(name, script))
    await phase(client, name, wanted)
    ended = (await status(client, name))["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (code, reason)


async def test_environment_is_clean_expanded_and_drawn_from_everywhere(
    client: Client, node: ProcessNode
) -> None:
    await client.create(CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"A": "1"}}, "default")
    await client.create(SECRETS, {"metadata": {"name": "s"}, "data": {"P": "cHc="}}, "default")
    env = [
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "s", "key": "P"}}},
        {
            "name": "NONE",
            "valueFrom": {"secretKeyRef": {"name": "x", "key": "P", "optional": True}},
        },
        {
            "name": "CPU",
            "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}},
        },
        {"name": "BOTH", "value": "$(POD) of $(A) $$(A) $(UNKNOWN)"},
    ]
    container = {
        "env": env,
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "command": ["sh", "-c", "env; echo arg=$0", "$(BOTH)"],
        "workingDir": "/usr",
        "resources": {"limits": {"cpu": "250m"}},
    }
    await client.create(POD_RUNS, pod("env", "", container=container))
    done = await phase(client, "env", "Succeeded")
    lines = read_log(node, "env").splitlines()
    assert {"POD=env", f"IP={done.status.pod_ip}", "PW=pw", "A=1", "CPU=250", "PWD=/usr"} <= set(
        lines
    )
    assert "arg=env of 1 $(A) $(UNKNOWN)" in lines
    assert not [one for one in lines if one.startswith(("NODE_SECRET", "NONE="))]


async def test_missing_config_map_is_named_and_delays_the_start(
    client: Client,
) -> None:
    container = {"envFrom": [{"configMapRef": {"name": "late"}}]}
    await client.create(POD_RUNS, pod("late", "exit 0", container=container))

    async def waits() -> bool:
        found = (await status(client, "late")).get("containerStatuses", [{}])[0]
        waiting = found.get("state", {}).get("waiting", {})
        return waiting == {
            "reason": "CreateContainerConfigError",
            "message": 'configmap "late" not found',
        }

    await eventually(waits)
    await client.create(CONFIG_MAPS, {"metadata": {"name": "late"}}, "default")
    await phase(client, "late", "Succeeded")


async def test_init_containers_run_in_order_and_failures_end_the_pod(
    client: Client, node: ProcessNode
) -> None:
    inits = [
        {"name": "a", "image": "i", "command": ["sh", "-c", "date +%s%N"]},
        {"name": "b", "image": "i", "command": ["sh", "-c", "date +%s%N; exit $(CODE)"]},
    ]
    for name, code, wanted in (("inits", "0", "Succeeded"), ("bad-init", "3", "Failed")):
        inits[1]["env"] = [{"name": "CODE", "value": code}]  # type: ignore[assignment]
        await client.create(POD_RUNS, pod(name, "date +%s%N", initContainers=inits))
        await phase(client, name, wanted)
    times = [int(read_log(node, "inits", one)) for one in ("a", "b", "main")]
    assert times == sorted(times)
    waiting = (await status(client, "bad-init"))["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "PodInitializing"


async def test_sidecar_runs_beside_and_ends_with_the_pod(client: Client, node: ProcessNode) -> None:
    sidecar = {
        "name": "side",
        "image": "i",
        "restartPolicy": "Always",
        "command": [
            "sh",
            "-c",
            "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done",
        ],
    }
    await client.create(POD_RUNS, pod("sidecar", "sleep 0.3", initContainers=[sidecar]))
    await phase(client, "sidecar", "Succeeded")
    lines = read_log(node, "sidecar", "side").splitlines()
    assert (lines[0], lines[-1]) == ("up", "bye")


async def test_crash_restarts_at_once_and_then_backs_off(client: Client, node: ProcessNode) -> None:
    again = pod("crash", "echo run; exit 1", restartPolicy="OnFailure")
    await client.create(POD_RUNS, again)

    async def backs_off() -> bool:
        found = (await status(client, "crash")).get("containerStatuses", [{}])[0]
        waiting = found.get("state", {}).get("waiting", {})
        return found.get("restartCount") == 1 and waiting.get("reason") == "CrashLoopBackOff"

    await eventually(backs_off)
    assert (await phase(client, "crash", "Running")).status.phase == "Running"
    assert read_log(node, "crash", query="previous=true") == "run\n"
    await eventually(lambda: _has(client, "crash", "BackOff"))
    await client.delete(POD_RUNS, "crash", "default")
    await gone(client, "crash")


async def _has(client: Client, name: str, reason: str) -> bool:
    return reason in await reasons(client, name)


async def test_deletion_asks_then_kills_everything_of_the_pod(
    client: Client, node: ProcessNode
) -> None:
    polite = "trap 'echo told; exit 0' TERM; sleep 1000 & while :; do sleep 0.05; done"
    daemon = f"sleep {10**6 + os.getpid()}"
    stubborn = f"trap '' TERM; (setsid {daemon} &); while :; do sleep 0.05; done"
    await client.create(POD_RUNS, pod("polite", polite))
    await client.create(POD_RUNS, pod("stubborn", stubborn))
    for name in ("polite", "stubborn"):
        await phase(client, name, "Running")
    await eventually(lambda: _processes(daemon), what="the daemon's start")
    # A grace longer than any wait here: it is gone because it ended, not because it was killed.
    await client.delete(POD_RUNS, "polite", "default", grace_seconds=3600)
    await gone(client, "polite")
    await client.delete(POD_RUNS, "stubborn", "default", grace_seconds=1)
    await gone(client, "stubborn")
    assert not _processes(daemon)


async def test_later_wish_for_a_shorter_grace_counts(client: Client) -> None:
    await client.create(POD_RUNS, pod("hasten", "trap '' TERM; while :; do sleep 0.05; done"))
    await phase(client, "hasten", "Running")
    await client.delete(POD_RUNS, "hasten", "default", grace_seconds=600)
    await client.delete(POD_RUNS, "hasten", "default", grace_seconds=1)
    await gone(client, "hasten", deadline=15)


def _processes(command: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if entry.read_bytes().replace(b"\0", b" ").strip() == command.encode():
                found.append(entry.parent.name)
        except OSError:
            continue
    return found


async def test_pre_stop_hook_runs_before_the_signal(client: Client, tmp_path: Path) -> None:
    hook = {"preStop": {"exec": {"command": ["sh", "-c", f"echo $HOSTNAME > {tmp_path}/hook"]}}}
    await client.create(POD_RUNS, pod("hook", "sleep 1000", container={"lifecycle": hook}))
    await phase(client, "hook", "Running")
    await client.delete(POD_RUNS, "hook", "default")
    await gone(client, "hook")
    assert Path(f"{tmp_path}/hook").read_text() == "hook\n"


@pytest.mark.parametrize(("code", "wanted"), [(0, "Running"), (1, "Failed")])
async def test_post_start_hook_must_succeed(client: Client, code: int, wanted: str) -> None:
    name = f"post-{code}"
    hook = {"postStart": {"exec": {"command": ["sh", "-c", f"exit {code}"]}}}
    await client.create(POD_RUNS, pod(name, "exec sleep 1000", container={"lifecycle": hook}))
    await phase(client, name, wanted)

    async def ready() -> bool:
        return (await status(client, name))["containerStatuses"][0]["ready"] == (code == 0)

    await eventually(ready)
    await client.delete(POD_RUNS, name, "default", grace_seconds=0)


async def test_deadline_fails_the_pod(client: Client) -> None:
    await client.create(POD_RUNS, pod("deadline", "sleep 1000", activeDeadlineSeconds=1))
    await phase(client, "deadline", "Failed")
    assert (await status(client, "deadline"))["reason"] == "DeadlineExceeded"


@pytest.mark.parametrize(
    ("name", "spec", "reason"),
    [
        ("too-big", {"container": {"resources": {"requests": {"cpu": "9999"}}}}, "OutOfcpu"),
        ("elsewhere", {"nodeSelector": {"disk": "ssd"}}, "NodeAffinity"),
        (
            "network-disk",
            {"volumes": [{"name": "v", "nfs": {"server": "files", "path": "/"}}]},
            "UnsupportedVolume",
        ),
    ],
)
async def test_what_cannot_run_here_is_refused_with_a_reason(
    client: Client, name: str, spec: dict[str, object], reason: str
) -> None:
    await client.create(POD_RUNS, pod(name, "exit 0", **spec))
    await phase(client, name, "Failed")
    found = await status(client, name)
    assert found["reason"] == reason
    assert found["message"].startswith("Pod was rejected: ")


async def test_probes_decide_on_readiness_and_restarts(client: Client, tmp_path: Path) -> None:
    flag = f"{tmp_path}/ready"
    container = {
        "readinessProbe": {"exec": {"command": ["test", "-e", flag]}, "periodSeconds": 1},
        "livenessProbe": {
            "exec": {"command": ["sh", "-c", f"test ! -e {flag}2"]},
            "periodSeconds": 1,
            "failureThreshold": 1,
        },
    }
    await client.create(
        POD_RUNS, pod("probed", "sleep 1000", container=container, restartPolicy="Always")
    )
    found = await phase(client, "probed", "Running")
    assert not found.status.container_statuses[0].ready
    Path(flag).touch()

    async def ready() -> bool:
        now = await client.get(POD_RUNS, "probed", "default")
        return now.status.container_statuses[0].ready

    await eventually(ready)
    Path(flag + "2").touch()

    async def restarted() -> bool:
        now = await client.get(POD_RUNS, "probed", "default")
        return now.status.container_statuses[0].restart_count == 1

    await eventually(restarted)
    await client.delete(POD_RUNS, "probed", "default", grace_seconds=0)


async def test_probe_runs_within_the_limits_of_its_container(
    client: Client, tmp_path: Path
) -> None:
    needs_cgroups()
    seen = tmp_path / "groups"
    look = ["sh", "-c", f"cat /proc/self/cgroup > {seen}"]
    container = {
        "readinessProbe": {"exec": {"command": look}, "periodSeconds": 1},
        "resources": {"limits": {"memory": "100Mi"}},
    }
    made = await client.create(POD_RUNS, pod("limited", "exec sleep 1000", container=container))
    await phase(client, "limited", "Running")
    await eventually(lambda: seen.exists() and f"{made.metadata.uid}/main" in seen.read_text())
    await client.delete(POD_RUNS, "limited", "default", grace_seconds=0)


async def test_tcp_and_http_probes_reach_the_pods_own_address(client: Client) -> None:
    serve = ["python", "-m", "http.server", "8123", "--bind", "$(IP)"]
    container = {
        "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"containerPort": 8123, "name": "web"}],
        "startupProbe": {"tcpSocket": {"port": 8123}, "periodSeconds": 1, "failureThreshold": 30},
        "readinessProbe": {"httpGet": {"port": "web", "path": "/"}, "periodSeconds": 1},
    }
    for name in ("web-a", "web-b"):
        await client.create(POD_RUNS, pod(name, serve, container=container))
    for name in ("web-a", "web-b"):

        async def ready(name: str = name) -> bool:
            now = await client.get(POD_RUNS, name, "default")
            return (
                now.status.container_statuses[0].ready if now.status.container_statuses else False
            )

        await eventually(ready)
        await client.delete(POD_RUNS, name, "default", grace_seconds=0)


async def test_memory_limit_kills_and_says_so(client: Client) -> None:
    needs_cgroups()
    hungry = ["python", "-c", "x = bytearray(300 << 20); print(len(x))"]
    container = {"resources": {"limits": {"memory": "60Mi"}}}
    await client.create(POD_RUNS, pod("hungry", hungry, container=container))
    await phase(client, "hungry", "Failed")
    ended = (await status(client, "hungry"))["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


async def test_image_is_said_to_be_unused(client: Client) -> None:
    await client.create(POD_RUNS, pod("image", "exit 0"))
    await phase(client, "image", "Succeeded")
    await eventually(lambda: _has(client, "image", "ImageNotPulled"))


async def test_last_words_become_the_message(client: Client) -> None:
    needs_mounts()
    container = {"terminationMessagePath": "/last/words"}
    await client.create(
        POD_RUNS, pod("words", "echo sorry > /last/words; exit 1", container=container)
    )
    await phase(client, "words", "Failed")
    ended = (await status(client, "words"))["containerStatuses"][0]["state"]["terminated"]
    assert ended["message"] == "sorry\n"


async def test_log_is_served_in_part_followed_and_stamped(
    client: Client, node: ProcessNode
) -> None:
    script = "for i in 1 2 3; do echo $i; done; echo oops >&2; sleep 0.5; printf end"
    await client.create(POD_RUNS, pod("log", script))
    await phase(client, "log", "Running", "Succeeded")
    assert read_log(node, "log", query="follow=true") == "1\n2\n3\noops\nend"
    await phase(client, "log", "Succeeded")
    assert read_log(node, "log", query="tailLines=2") == "oops\nend"
    assert read_log(node, "log", query="limitBytes=3") == "1\n2"
    assert read_log(node, "log", query="sinceSeconds=3600").startswith("1\n")
    stamped = read_log(node, "log", query="tailLines=2&timestamps=true")
    assert re.match(r"\d{4}-\d\d-\d\dT[\d:]+\.\d{9}Z oops\n", stamped)


async def test_pod_is_running_soon_after_it_is_bound(client: Client) -> None:
    took = []
    for number in range(5):
        begun = time.monotonic()
        await client.create(POD_RUNS, pod(f"soon-{number}", "sleep 1000"))
        await phase(client, f"soon-{number}", "Running")
        took.append(time.monotonic() - begun)
        await client.delete(POD_RUNS, f"soon-{number}", "default", grace_seconds=0)
    # A loose bound, for machines under load; the figure itself is measured elsewhere.
    assert min(took) < 1.0, took


@pytest.mark.parametrize(
    ("context", "wanted"),
    [({"user": "scheduler"}, "403"), ({"certificate": False}, "certificate required|closed|reset")],
)
async def test_log_is_not_for_everyone(
    node: ProcessNode, context: dict[str, object], wanted: str
) -> None:
    with pytest.raises((OSError, http.client.HTTPException), match=f"(?i){wanted}"):
        read_log(node, "any", **context)
