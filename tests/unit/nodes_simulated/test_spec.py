"""What to simulate, read and checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lockstep.nodes.simulated.spec import SpecError, parse


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("64x8", {"nodes": 64, "gpus": 8, "nodes_per_leaf": 8, "leaves_per_spine": 4}),
        ("1000x8", {"nodes_per_leaf": 32, "leaves_per_spine": 8}),
        ("64x8", {"cpus": 96, "memory": 2 << 40, "nvlink": 8, "nics": 8, "gpu_memory": 81920}),
        ("4x0", {"gpus": 0, "cpus": 32, "memory": 128 << 30, "nics": 0}),
        ("64x8,nodes-per-leaf=16,leaves-per-spine=2", {"nodes_per_leaf": 16}),
        ("2x4, cpus=8 ,memory=64Gi", {"cpus": 8, "memory": 64 << 30}),
        ("2x4,gpu-model=A100,gpu-memory=40Gi", {"gpu_model": "A100", "gpu_memory": 40960}),
        ("2x8,nvlink=4,nics=2,name-prefix=rack1", {"nvlink": 4, "name_prefix": "rack1"}),
    ],
)
def test_a_specification_is_read(spec: str, expected: dict[str, Any]) -> None:
    [group] = parse(spec)
    assert {key: getattr(group, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("64", ["'64'", "NODESxGPUS", "64x8"]),
        ("64x8,fast", ["'fast'", "OPTION=VALUE"]),
        ("64x8,racks=3", ["racks", "nodes-per-leaf"]),
        ("64x8,nics=2,nics=3", ["nics", "twice"]),
        ("0x8", ["nodes is '0'", "from 1 to"]),
        ("64x65", ["gpus is '65'", "from 0 to 64"]),
        ("64x8,nodes-per-leaf=0", ["nodes-per-leaf is '0'", "from 1"]),
        ("64x8,cpus=many", ["cpus is 'many'", "whole number"]),
        ("64x8,memory=lots", ["memory is 'lots'", "80Gi"]),
        ("64x8,gpu-memory=80", ["gpu-memory is '80'", "80Gi"]),
        ("64x8,gpu-model=NVIDIA H100", ["gpu-model is 'NVIDIA H100'", "label"]),
        ("64x8,name-prefix=Sim", ["name-prefix is 'Sim'", "lower-case"]),
        ("nowhere.yaml", ["nowhere.yaml", "cannot be read"]),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(spec: str, words: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        parse(spec)
    assert all(word in str(caught.value) for word in words), str(caught.value)


GROUPS = [{"nodes": 4, "gpus": 8, "gpu-model": "H100"}, {"nodes": 2, "name-prefix": "cpu"}]


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
@pytest.mark.parametrize("document", [GROUPS, {"groups": GROUPS}], ids=["list", "mapping"])
def test_a_file_holds_groups(tmp_path: Path, suffix: str, document: Any) -> None:
    path = tmp_path / f"nodes{suffix}"
    path.write_text(json.dumps(document) if suffix == ".json" else yaml.safe_dump(document))
    first, second = parse(str(path))
    assert (first.nodes, first.gpus, first.gpu_model) == (4, 8, "H100")
    assert (second.nodes, second.gpus, second.name_prefix) == (2, 0, "cpu")


def test_groups_with_no_prefix_get_one_each(tmp_path: Path) -> None:
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps([{"nodes": 1}, {"nodes": 1}]))
    assert [group.name_prefix for group in parse(str(path))] == ["sim0", "sim1"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", ["not JSON"]),
        ("[]", ["list of node groups"]),
        ('{"nodes": 3}', ["list of node groups"]),
        ("[3]", ["groups[0] is 3", "mapping"]),
        ('[{"nodes": 1}, {"gpus": 8}]', ["groups[1].nodes is nothing"]),
        ('[{"nodes": true}]', ["groups[0].nodes is True"]),
        ('[{"nodes": 1, "gpu": 8}]', ["groups[0].gpu is not an option", "gpus"]),
        (
            '[{"nodes": 1, "name-prefix": "a"}, {"nodes": 1, "name-prefix": "a"}]',
            ["groups[1].name-prefix 'a'", "another"],
        ),
        ('[{"nodes": 60000}, {"nodes": 60000}]', ["120000 nodes"]),
    ],
)
def test_a_files_error_is_named_with_its_place(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "nodes.json"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        parse(str(path))
    assert all(word in str(caught.value) for word in [str(path), *words]), str(caught.value)
