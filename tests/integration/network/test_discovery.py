"""Trees from real tools: lldpd at both ends of each cable, ibnetdiscover on ibsim."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.network import alike, through_ibsim
from bench.support.networks import fat_tree
from tests.support.network_world import World
from tests.support.waiting import eventually_sync

from lockstep.devices.network.core.fabric import resolve
from lockstep.devices.network.core.infiniband import ibnetdiscover

pytestmark = pytest.mark.xdist_group("network")
SPACES = ("n1", "n2", "n3", "switch")


def succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def daemons(world: World, tmp_path: Path) -> Iterator[dict[str, str]]:
    """lldpd in each namespace; its control socket by namespace."""
    if not (shutil.which("lldpd") and shutil.which("lldpcli")):
        pytest.skip("needs lldpd")
    running, sockets = [], {}
    try:
        for name in SPACES:
            # The path of a socket is short.
            sockets[name] = f"/tmp/{world.fabric.space(name)}.lldp"  # noqa: S108
            ports = "s*-0" if name == "switch" else "rail0"
            command = ["lldpd", "-d", "-u", sockets[name], "-I", ports]
            running.append(world.fabric.popen(name, command, tmp_path / f"{name}.log"))
        for name in SPACES:
            named = ["configure", "system", "hostname", name]
            command = ["lldpcli", "-u", sockets[name], *named]
            eventually_sync(
                lambda c=command: (
                    not subprocess.run(c, capture_output=True, check=False).returncode
                ),
                30,
                f"lldpd of {name}",
            )
            often = ["lldpcli", "-u", sockets[name], "configure", "lldp", "tx-interval", "1"]
            assert succeeds(often)
        yield sockets
    finally:
        for one in running:
            one.terminate()
        for one in running:
            one.wait(20)
        for socket in sockets.values():
            Path(socket).unlink(missing_ok=True)


# Four daemons that speak once a second at best: minutes on a machine with other work.
@pytest.mark.soak
def test_real_lldpd_tells_the_tree_and_it_becomes_the_topology(
    world: World, daemons: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "lldp"
    folder.mkdir()

    def heard() -> bool:
        seen = []
        for name, socket in daemons.items():
            asked = ["lldpcli", "-u", socket, "-f", "json", "show", "neighbors", "details"]
            text = subprocess.check_output(asked, text=True)
            (folder / f"{name}.json").write_text(text)
            wanted = SPACES[:3] if name == "switch" else ("switch",)
            seen.append(all(f'"{other}"' in text for other in wanted))
        return all(seen)

    eventually_sync(heard, 240, "all ends hear each other")
    done = world.run("network", "discover", "--lldp", str(folder), "--apply", "-o", "json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["nodes"] == {name: ["switch"] for name in SPACES[:3]}, said
    assert said["faults"] == []
    spec = world.read("/apis/lockstep.dev/v1alpha1/topologies/default")["spec"]
    assert [tier["name"] for tier in spec["tiers"]] == ["leaf", "node"]
    node = world.read("/api/v1/nodes/n2")
    assert node["metadata"]["labels"]["network.lockstep.dev/leaf"] == "switch"


@pytest.mark.parametrize("seed", [1, 2])
def test_ibnetdiscover_on_a_simulated_fabric_tells_its_tree(seed: int) -> None:
    drawn = fat_tree(random.Random(seed), broken=False)  # noqa: S311
    text = through_ibsim(drawn.fabric)
    if text is None:
        pytest.skip("needs ibsim and ibnetdiscover")
    found = resolve(ibnetdiscover(text))
    assert alike({node: list(path) for node, path in found.nodes.items()}, drawn)
    assert found.faults == []
