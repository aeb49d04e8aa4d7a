"""The protocol's files: what is read, what is written, and what is said about bad ones."""

from pathlib import Path

import pytest
from bench.fgd.lists import (
    BadList,
    ListedNode,
    ListedPod,
    Placement,
    read_arrivals,
    read_nodes,
    read_pods,
    write_placements,
)
from bench.fgd.nodes import NodeOffer

from lockstep.scheduler.core.scoring.gpu_milli import Request

NODES = "sn,cpu_milli,memory_mib,gpu,model"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"


def file(directory: Path, *lines: str) -> Path:
    path = directory / "list.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_nodes_are_read(tmp_path: Path) -> None:
    path = file(tmp_path, NODES, "n1,64000,262144,2,P100", "n2,32000,1024,0,")
    assert read_nodes(path) == [
        ListedNode("n1", NodeOffer(64_000, 262_144, 2, "P100")),
        ListedNode("n2", NodeOffer(32_000, 1024, 0, "")),
    ]


@pytest.mark.parametrize("blank", ["", "   ", ",,,,", " , ,,,"])
def test_lines_that_hold_nothing_are_passed_over(tmp_path: Path, blank: str) -> None:
    path = file(tmp_path, NODES, "n1,64000,1024,2,P100", blank, "n2,32000,1024,0,", blank)
    assert [node.name for node in read_nodes(path)] == ["n1", "n2"]


def test_pods_are_read_with_the_models_that_will_do(tmp_path: Path) -> None:
    path = file(tmp_path, PODS, "p1,4000,1024,1,470,T4|P100", "p2,1,1,8,1000,", "p3,1,1,0,0,T4")
    assert read_pods(path) == [
        ListedPod("p1", Request(4000, 1024, 1, 470, frozenset({"T4", "P100"}))),
        ListedPod("p2", Request(1, 1, 8, 1000)),
        ListedPod("p3", Request(1, 1)),
    ]


def test_lists_without_models_and_with_more_columns_are_read(tmp_path: Path) -> None:
    path = file(tmp_path, "name,qos,cpu_milli,memory_mib,num_gpu,gpu_milli", "p1,LS,1.0,2,1,1000")
    assert read_pods(path) == [ListedPod("p1", Request(1, 2, 1, 1000))]


def test_arrivals_follow_the_file_and_copies_keep_the_name(tmp_path: Path) -> None:
    pods = [ListedPod("a", Request(1, 1)), ListedPod("b", Request(2, 2))]
    path = file(tmp_path, "arrival,pod", "7,b", "3,a", "9,b")
    assert read_arrivals(path, pods) == [("7", pods[1]), ("3", pods[0]), ("9", pods[1])]


def test_placements_are_written_a_line_an_arrival(tmp_path: Path) -> None:
    path = tmp_path / "placements.csv"
    write_placements(
        path,
        [
            Placement("0", "a", "n1", (0, 3)),
            Placement("1", "b", "", ()),
            Placement("2", "c", "n2", ()),
        ],
    )
    assert path.read_text().splitlines() == [
        "arrival,pod,node,gpus",
        "0,a,n1,0-3",
        "1,b,,",
        "2,c,n2,",
    ]


BAD_PODS = [
    # lines after the first, what the message says
    (["p1,x,1,1,1000,"], "line 2: cpu_milli is 'x'; write a whole number"),
    (["p1,1,1,1,1000,", "p2,1,-4,1,1000,"], "line 3: memory_mib is '-4'"),
    (["p1,1,,1,1000,"], "line 2: memory_mib is ''"),
    (["p1,nan,1,1,1000,"], "line 2: cpu_milli is 'nan'"),
    (["p1,inf,1,1,1000,"], "line 2: cpu_milli is 'inf'"),
    (["p1,1e30,1,1,1000,"], "line 2: cpu_milli is '1e30'; write 1000000000000 at most"),
    (["p1,1,1,4096,1000,"], "line 2: num_gpu is '4096'; write 1024 at most"),
    (["p1,1,1,2,500,"], "line 2: gpu_milli is 500 of 2 GPUs; several GPUs are whole: 1000"),
    (["p1,1,1,1,1001,"], "line 2: gpu_milli is 1001; write 1 to 1000"),
    (["p1,1,1,1,0,"], "line 2: gpu_milli is 0; write 1 to 1000"),
    ([",1,1,1,1000,"], "line 2: name is empty"),
    (["p1,1,1,1,1000,", "p1,1,1,1,1000,"], "the name p1 comes twice, as entries 1 and 2"),
    ([], "holds no line below its first"),
]


@pytest.mark.parametrize(("lines", "said"), BAD_PODS)
def test_a_bad_list_is_named_with_line_field_and_remedy(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    path = file(tmp_path, PODS, *lines)
    with pytest.raises(BadList) as caught:
        read_pods(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_missing_fields_files_and_pods_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadList, match="line 1: no field gpu, model; the first line must name"):
        read_nodes(file(tmp_path, "sn,cpu_milli,memory_mib"))
    with pytest.raises(BadList, match=r"nowhere\.csv: No such file"):
        read_nodes(tmp_path / "nowhere.csv")
    with pytest.raises(BadList, match="line 2: pod 'x' is not in the list of pods"):
        read_arrivals(file(tmp_path, "arrival,pod", "1,x"), [])
    with pytest.raises(BadList, match="UTF-8"):
        (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00sn")
        read_nodes(tmp_path / "binary.csv")
    with pytest.raises(BadList, match="name a file that can be written"):
        write_placements(tmp_path / "no" / "such.csv", [])
