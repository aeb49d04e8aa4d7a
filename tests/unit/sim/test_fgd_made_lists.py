"""Public lists that are not at hand are made anew, by what is seen of those that are."""

from collections import Counter
from pathlib import Path

import pytest
from bench.support import openb, openb_made

LISTS = openb.directory() or Path()
FIELDS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"
WITHOUT, SHARE, ONE, EIGHT = "2000,4096,0,0", "1000,2048,1,500", "4000,8192,1,1000", "8,8,8,1000"
POOL = 10 * [WITHOUT] + 40 * [SHARE] + 48 * [ONE] + 2 * [EIGHT]


def written(directory: Path, name: str, pods: list[str]) -> None:
    lines = [f"p{i},{pod}" for i, pod in enumerate(pods)]
    openb.pods(directory, name).write_text("\n".join([FIELDS, *lines]) + "\n")


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    directory = tmp_path / "lists"
    directory.mkdir()
    written(directory, "default", [f"{pod}," for pod in POOL])
    written(directory, "gpuspec33", [f"{WITHOUT},", *3 * [f"{ONE},T4"], f"{ONE},"])
    return directory


def kinds(lines: list[openb_made.Line]) -> Counter[str]:
    return Counter(",".join(line[field] for field in openb_made.FIELDS[1:5]) for line in lines)


def share_of_gpus(lines: list[openb_made.Line], *kept: str) -> float:
    gpus = {SHARE: 0.5, ONE: 1.0, EIGHT: 8.0, WITHOUT: 0.0}
    found = kinds(lines)
    return sum(found[kind] * gpus[kind] for kind in kept) / sum(
        count * gpus[kind] for kind, count in found.items()
    )


def test_pods_without_gpus_are_a_part_of_all(lists: Path) -> None:
    made = kinds(openb_made.make(lists, "cpu250"))
    assert made == {WITHOUT: 30, SHARE: 40, ONE: 48, EIGHT: 2}


def test_shares_are_a_part_of_the_gpus(lists: Path) -> None:
    made = openb_made.make(lists, "gpushare60")
    assert kinds(made)[WITHOUT] == 10
    assert len(made) == len(POOL)
    assert share_of_gpus(made, SHARE) == pytest.approx(0.6, abs=0.1)


def test_models_are_named_by_part_of_the_gpu_pods(lists: Path) -> None:
    made = openb_made.make(lists, "gpuspec20")
    assert kinds(made) == Counter(POOL)
    named = [line for line in made if line["gpu_spec"]]
    assert len(named) == 18
    assert {line["gpu_spec"] for line in named} == {"T4"}
    assert all(line["num_gpu"] != "0" for line in named)


def test_copies_of_pods_of_several_gpus_are_added(lists: Path) -> None:
    made = openb_made.make(lists, "multigpu50")
    assert kinds(made) - Counter(POOL) == {EIGHT: kinds(made)[EIGHT] - 2}
    assert 0.5 <= share_of_gpus(made, EIGHT) < 0.56


def test_a_list_repeats_itself_and_its_names_differ(lists: Path) -> None:
    made = openb_made.make(lists, "multigpu30")
    assert made == openb_made.make(lists, "multigpu30")
    assert len({line["name"] for line in made}) == len(made)


def test_what_is_at_hand_is_not_made(lists: Path, tmp_path: Path) -> None:
    written(lists, "cpu200", [f"{ONE},"])
    into = tmp_path / "all"
    into.mkdir()
    made = openb_made.complete(lists, into)
    assert "cpu200" not in made
    assert sorted(made) == sorted(set(openb_made.NAMES) - {"cpu200"})
    assert openb.pods(into, "cpu200").read_text() == openb.pods(lists, "cpu200").read_text()
    assert {"default", *openb_made.NAMES} <= set(openb.names(into))


def test_a_list_that_nobody_knows_is_refused(lists: Path) -> None:
    with pytest.raises(ValueError, match="disk20"):
        openb_made.make(lists, "disk20")


@pytest.mark.skipif(openb.directory() is None, reason=openb.ABSENT)
@pytest.mark.parametrize("name", ["cpu050", "gpushare40", "gpuspec10", "multigpu20", "multigpu50"])
def test_a_public_list_made_anew_asks_for_as_much(name: str) -> None:
    made, public = openb_made.make(LISTS, name), openb_made.read(openb.pods(LISTS, name))
    for by in (openb_made.gpu_milli, lambda pod: int(pod["cpu_milli"]), lambda pod: 1):
        assert sum(map(by, made)) == pytest.approx(sum(map(by, public)), rel=0.03)
    named = [sum(1 for pod in pods if pod["gpu_spec"]) for pods in (made, public)]
    assert named[0] == pytest.approx(named[1], rel=0.05)
