"""The public lists of pods that are not at hand, made anew from those that are.

How the public ones came about is seen from comparing them with each other:

- ``cpuN``: all pods with GPUs of the default list, and as many without that these are N/10 per cent
  of all; drawn from the default list's.
- ``gpushareN``: as many pods with GPUs as the default list has, N per cent of their GPU milli
  asked as shares; both kinds drawn from the default list's.
- ``gpuspecN``: the default list, of whose pods with GPUs N per cent name models, drawn from what
  the pods of ``gpuspec33`` name, whatever else they ask.
- ``multigpuN``: the default list, and copies of its pods of several GPUs until a little more than N
  per cent of the GPU milli are asked by such.

A list made so is not the public one: figures of it stand beside the published ones, no more.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from bench.support import openb

Line = dict[str, str]

FIELDS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")
NAMES = (
    "cpu200",
    "cpu250",
    "gpushare60",
    "gpushare80",
    "gpuspec20",
    "gpuspec25",
    "multigpu30",
    "multigpu40",
)
BASE, NAMING = "default", "gpuspec33"
BEYOND = 0.35
"""Points by which the public lists of several GPUs go beyond what they are called after."""


def complete(lists: Path, into: Path) -> tuple[str, ...]:
    """Put into a directory what *lists* holds and the rest of the lists, made anew.

    Returns the names of those that were made.
    """
    for path in lists.glob("openb_*.csv"):
        (into / path.name).symlink_to(path.resolve())
    made = tuple(name for name in NAMES if not openb.pods(lists, name).exists())
    for name in made:
        _write(openb.pods(into, name), make(lists, name))
    return made


def make(lists: Path, name: str) -> list[Line]:
    """Return the list of that *name*, made from others; the same each time."""
    found = re.fullmatch(r"([a-z]+)(\d+)", name)
    if found is None or found[1] not in _RECIPES:
        raise ValueError(f"no recipe for a list called {name!r}; there are {', '.join(_RECIPES)}")
    chance = Random(name)
    pods = read(openb.pods(lists, BASE))
    naming = read(openb.pods(lists, NAMING)) if found[1] == "gpuspec" else []
    made = _RECIPES[found[1]](pods, naming, int(found[2]), chance)
    return [{**line, "name": f"pod-{i:05}"} for i, line in enumerate(made)]


def _with_cpu(pods: Sequence[Line], _: Sequence[Line], part: int, chance: Random) -> list[Line]:
    taking = [pod for pod in pods if gpu_milli(pod)]
    without = [pod for pod in pods if not gpu_milli(pod)]
    count = round(len(taking) * part / (1000 - part))
    return chance.choices(without, k=count) + taking


def _with_shares(pods: Sequence[Line], _: Sequence[Line], part: int, chance: Random) -> list[Line]:
    without = [pod for pod in pods if not gpu_milli(pod)]
    shares = [pod for pod in pods if 0 < gpu_milli(pod) < 1000]
    whole = [pod for pod in pods if gpu_milli(pod) >= 1000]
    small, large = _mean(shares), _mean(whole)
    ratio = part / 100
    count = len(shares) + len(whole)
    # Of n shares and m whole ones, n + m = count and n small / (n small + m large) = ratio.
    of_shares = round(count * ratio * large / (ratio * large + (1 - ratio) * small))
    drawn = chance.choices(shares, k=of_shares)
    return without + drawn + chance.choices(whole, k=count - of_shares)


def _with_models(
    pods: Sequence[Line], naming: Sequence[Line], part: int, chance: Random
) -> list[Line]:
    named = [pod["gpu_spec"] for pod in naming if pod["gpu_spec"]]
    taking = [i for i, pod in enumerate(pods) if gpu_milli(pod)]
    made = [{**pod, "gpu_spec": ""} for pod in pods]
    for i in chance.sample(taking, round(len(taking) * part / 100)):
        made[i]["gpu_spec"] = chance.choice(named)
    return made


def _with_several(pods: Sequence[Line], _: Sequence[Line], part: int, chance: Random) -> list[Line]:
    made = list(pods)
    several = [pod for pod in pods if int(pod["num_gpu"]) > 1]
    asked = sum(map(gpu_milli, pods))
    of_several = sum(map(gpu_milli, several))
    while 100 * of_several < (part + BEYOND) * asked:
        pod = chance.choice(several)
        made.append(pod)
        asked += gpu_milli(pod)
        of_several += gpu_milli(pod)
    return made


_RECIPES: dict[str, Callable[[Sequence[Line], Sequence[Line], int, Random], list[Line]]] = {
    "cpu": _with_cpu,
    "gpushare": _with_shares,
    "gpuspec": _with_models,
    "multigpu": _with_several,
}


def gpu_milli(pod: Line) -> int:
    """Return the GPU milli that a pod asks."""
    return int(pod["num_gpu"]) * int(pod["gpu_milli"])


def _mean(pods: Sequence[Line]) -> float:
    return sum(map(gpu_milli, pods)) / len(pods)


def read(path: Path) -> list[Line]:
    """Return the lines of a list, with empty text for what they do not say."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{field: line.get(field) or "" for field in FIELDS} for line in csv.DictReader(file)]


def _write(path: Path, lines: Sequence[Line]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(lines)
