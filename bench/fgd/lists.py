"""The protocol's files: nodes, pods, an order of arrivals, and the placements that come out."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.fgd.nodes import NodeOffer
from lockstep.scheduler.core.scoring.gpu_milli import WHOLE, Request

LARGEST, MOST_CARDS = 10**12, 1024
"""The largest numbers that are read: in general, and of a node's or a pod's cards."""
NODE_FIELDS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_FIELDS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
ARRIVAL_FIELDS = ("arrival", "pod")
PLACEMENT_FIELDS = ("arrival", "pod", "node", "gpus")


class BadList(ValueError):
    """A file cannot be used; says which, on what line, in which field, and what would do."""


@dataclass(frozen=True, slots=True)
class ListedNode:
    """A node by its name in the list."""

    name: str
    offer: NodeOffer


@dataclass(frozen=True, slots=True)
class ListedPod:
    """A pod by its name in the list; copies keep the name."""

    name: str
    request: Request


@dataclass(frozen=True, slots=True)
class Placement:
    """What became of an arrival: *node* is empty when no node had room."""

    arrival: str
    pod: str
    node: str
    gpus: tuple[int, ...]


def read_nodes(path: Path) -> list[ListedNode]:
    """Return the nodes of a list.

    Raises:
        BadList: when the file cannot be read, a field is missing or wrong, or a name comes twice.
    """
    nodes = [_node(line) for line in _lines(path, NODE_FIELDS)]
    _check_names(path, [node.name for node in nodes])
    return nodes


def read_pods(path: Path) -> list[ListedPod]:
    """Return the pods of a list; ``gpu_spec``, which names models as ``A|B``, may be missing.

    Raises:
        BadList: when the file cannot be read, a field is missing or wrong, or a name comes twice.
    """
    pods = [_pod(line) for line in _lines(path, POD_FIELDS)]
    _check_names(path, [pod.name for pod in pods])
    return pods


def read_arrivals(path: Path, pods: Sequence[ListedPod]) -> list[tuple[str, ListedPod]]:
    """Return the arrivals in the order of the file: their numbers, and the pods they name.

    Raises:
        BadList: when the file cannot be read, or names a pod that the list of pods does not have.
    """
    known = {pod.name: pod for pod in pods}
    arrivals = []
    for line in _lines(path, ARRIVAL_FIELDS):
        pod = known.get(line.text("pod"))
        if pod is None:
            name = line.text("pod")
            raise line.bad("pod", f"{name!r} is not in the list of pods", "name one of its pods")
        arrivals.append((line.text("arrival"), pod))
    return arrivals


def write_placements(path: Path, placements: Iterable[Placement]) -> None:
    """Write one line for each arrival, in order.

    Raises:
        BadList: when the file cannot be written.
    """
    try:
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(PLACEMENT_FIELDS)
            for p in placements:
                writer.writerow((p.arrival, p.pod, p.node, "-".join(map(str, p.gpus))))
    except OSError as error:
        raise BadList(f"{path}: {error.strerror}; name a file that can be written") from error


class _Line:
    """One line of a file, as fields by name."""

    def __init__(self, path: Path, number: int, fields: Mapping[str, str | None]) -> None:
        self._path = path
        self._number = number
        self._fields = fields

    def text(self, field: str) -> str:
        return (self._fields.get(field) or "").strip()

    def number(self, field: str, most: int = LARGEST) -> int:
        text = self.text(field)
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if value < 0 or not value.is_integer():
            raise self.bad(field, f"is {text!r}", "write a whole number that is not negative")
        if value > most:
            raise self.bad(field, f"is {text!r}", f"write {most} at most")
        return int(value)

    def bad(self, field: str, what: str, remedy: str) -> BadList:
        return BadList(f"{self._path}, line {self._number}: {field} {what}; {remedy}")


def _lines(path: Path, wanted: Sequence[str]) -> Iterator[_Line]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [field for field in wanted if field not in (reader.fieldnames or ())]
            if missing:
                raise BadList(
                    f"{path}, line 1: no field {', '.join(missing)}; the first line must name "
                    f"{', '.join(wanted)}"
                )
            for fields in reader:
                line = _Line(path, reader.line_num, fields)
                if any(map(line.text, reader.fieldnames or ())):  # spreadsheets end with ",,,,"
                    yield line
    except OSError as error:
        raise BadList(f"{path}: {error.strerror}; name a CSV file that can be read") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadList(f"{path}: {error}; write CSV in UTF-8") from error


def _node(line: _Line) -> ListedNode:
    offer = NodeOffer(
        cpu=line.number("cpu_milli"),
        memory=line.number("memory_mib"),
        cards=line.number("gpu", MOST_CARDS),
        model=line.text("model"),
    )
    return ListedNode(_name(line, "sn"), offer)


def _pod(line: _Line) -> ListedPod:
    cards, milli = line.number("num_gpu", MOST_CARDS), line.number("gpu_milli")
    if cards > 1 and milli != WHOLE:
        raise line.bad("gpu_milli", f"is {milli} of {cards} GPUs", "several GPUs are whole: 1000")
    if cards == 1 and not 0 < milli <= WHOLE:
        raise line.bad("gpu_milli", f"is {milli}", "write 1 to 1000 where num_gpu is 1")
    request = Request(
        cpu=line.number("cpu_milli"),
        memory=line.number("memory_mib"),
        cards=cards,
        milli=milli if cards else 0,
        models=frozenset(filter(None, line.text("gpu_spec").split("|"))) if cards else frozenset(),
    )
    return ListedPod(_name(line, "name"), request)


def _name(line: _Line, field: str) -> str:
    if not line.text(field):
        raise line.bad(field, "is empty", "give every line a name")
    return line.text(field)


def _check_names(path: Path, names: Sequence[str]) -> None:
    if not names:
        raise BadList(f"{path}: holds no line below its first; add at least one")
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if name in first:
            raise BadList(
                f"{path}: the name {name} comes twice, as entries {first[name]} and {i + 1}; "
                "give every line a name of its own"
            )
        first[name] = i + 1
