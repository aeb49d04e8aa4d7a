"""Each pod's ports on its own address, for any program: BPF programs at ``bind`` and ``connect``.

All pods share the machine's network, so two servers that listen on ``0.0.0.0:8080`` would collide.
For the ports that a pod declares, the programs put the pod's own address in place of "every
address" and of loopback, for its servers and for those in the pod that call them. They hang on a
control group (version 2) of the pod and go with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from socket import htons, inet_aton
from typing import Final

from lockstep.nodes.process.cgroups import GROUP, OWN, Groups
from lockstep.nodes.process.spec import Pod

MOUNTS: Final = Path("/proc/self/mounts")
_BPF: Final = {"x86_64": 321, "aarch64": 280}
_LOAD, _ATTACH = 5, 8
_SOCK_ADDR: Final = 18
_REPLACEABLE: Final = 1
_BIND4, _BIND6, _CONNECT4, _CONNECT6 = 8, 9, 10, 11
_LOOPBACK4: Final = struct.unpack("=i", inet_aton("127.0.0.1"))[0]
_LOOPBACK6: Final = struct.unpack("=i", b"\0\0\0\1")[0]
_MAPPED: Final = struct.unpack("=i", b"\0\0\xff\xff")[0]
# Offsets in struct bpf_sock_addr.
_ADDRESS4, _ADDRESS6, _PORT = 4, 8, 24
_IF_EQUAL, _IF_NOT, _GO, _LOAD_WORD, _STORE_WORD, _SET, _EXIT = (
    0x15,
    0x55,
    5,
    0x61,
    0x63,
    0xB4,
    0x95,
)
_OR: Final = 0x4F


@dataclass(frozen=True, slots=True)
class _Jump:
    """A jump to a named place, resolved once the program is whole."""

    code: int
    value: int
    to: str


_Step = tuple[int, int, int, int, int] | _Jump | str


def program(address: str, ports: Collection[int], *, six: bool) -> bytes:
    """Return the instructions that put *address* in place of every address, on *ports* alone."""
    own = struct.unpack("=i", inet_aton(address))[0]
    steps: list[_Step] = [(_LOAD_WORD, 2, 1, _PORT, 0)]
    steps += [_Jump(_IF_EQUAL, htons(port), "ours") for port in sorted(set(ports))]
    steps += [_Jump(_GO, 0, "done"), "ours"]
    last = _ADDRESS4
    if six:
        last = _ADDRESS6 + 12
        steps.append((_LOAD_WORD, 2, 1, _ADDRESS6, 0))
        for word in (4, 8):
            steps += [(_LOAD_WORD, 3, 1, _ADDRESS6 + word, 0), (_OR, 2, 3, 0, 0)]
        steps.append(_Jump(_IF_NOT, 0, "done"))
    steps += [
        (_LOAD_WORD, 2, 1, last, 0),
        _Jump(_IF_EQUAL, 0, "set"),
        _Jump(_IF_NOT, _LOOPBACK6 if six else _LOOPBACK4, "done"),
        "set",
        (_SET, 2, 0, 0, own),
        (_STORE_WORD, 1, 2, last, 0),
    ]
    if six:
        steps += [(_SET, 2, 0, 0, _MAPPED), (_STORE_WORD, 1, 2, _ADDRESS6 + 8, 0)]
    return _assembled([*steps, "done", (_SET, 0, 0, 0, 1), (_EXIT, 0, 0, 0, 0)])


def _assembled(steps: list[_Step]) -> bytes:
    places: dict[str, int] = {}
    real: list[tuple[int, int, int, int, int] | _Jump] = []
    for step in steps:
        if isinstance(step, str):
            places[step] = len(real)
        else:
            real.append(step)
    return b"".join(_encoded(real, places))


def _encoded(
    steps: list[tuple[int, int, int, int, int] | _Jump], places: dict[str, int]
) -> Iterator[bytes]:
    for index, step in enumerate(steps):
        if isinstance(step, _Jump):
            register = 0 if step.code == _GO else 2
            yield struct.pack("=BBhi", step.code, register, places[step.to] - index - 1, step.value)
        else:
            code, to, source, offset, value = step
            yield struct.pack("=BBhi", code, to | source << 4, offset, value)


def declared(pod: Pod) -> set[int]:
    """Return the TCP ports that the containers of *pod* declare."""
    return {
        port.container_port
        for container in pod.spec.containers
        for port in container.ports
        if port.protocol == "TCP"
    }


class Ports:
    """The control groups on which the programs hang."""

    def __init__(self, name: str, groups: Groups) -> None:
        self.problem = ""
        """Why pods cannot have ports of their own; empty where they can."""
        self.root: Path | None = None
        self._own = False
        try:
            if groups.version == 2 and groups.roots:
                self.root = next(iter(groups.roots.values()))
            else:
                self.root, self._own = _unified(f"{GROUP}-{name}"), True
        except OSError as error:
            self.problem = error.strerror or str(error)

    def join(self, pod: Pod, container: str, address: str) -> tuple[str, ...]:
        """Give a pod its declared ports; return what *container* joins them by, if it has any.

        Raises:
            OSError: when the kernel or the node's rights do not allow it.
        """
        wanted = declared(pod)
        if not wanted or not address:
            return ()
        return (self.enter(pod.metadata.uid, container, address, wanted),)

    def enter(self, pod: str, container: str, address: str, ports: Collection[int]) -> str:
        """Hang the programs on the group of *pod*; return what *container* joins it by.

        Raises:
            OSError: when the kernel or the node's rights do not allow it.
        """
        if self.root is None:
            raise OSError(0, self.problem)
        place = self.root / pod
        (place / container).mkdir(parents=True, exist_ok=True)
        group = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for kind in (_BIND4, _CONNECT4):
                _hang(group, kind, program(address, ports, six=False))
            for kind in (_BIND6, _CONNECT6):
                _hang(group, kind, program(address, ports, six=True))
        finally:
            os.close(group)
        return str(place / container / "cgroup.procs")

    def close(self) -> None:
        """Remove the node's own group, when nothing is in it."""
        if self._own and self.root is not None:
            with contextlib.suppress(OSError):
                self.root.rmdir()


def _unified(name: str) -> Path:
    """Return a group of version 2 beside those of version 1.

    Raises:
        OSError: when there is no such hierarchy, or none may be made in it.
    """
    for line in MOUNTS.read_text().splitlines():
        _, top, kind, *_ = line.split(" ")
        if kind != "cgroup2":
            continue
        own = next((one[3:] for one in OWN.read_text().splitlines() if one.startswith("0::")), "/")
        place = Path(top) / own.lstrip("/") / name
        place.mkdir(exist_ok=True)
        return place
    raise OSError(0, "no control groups of version 2 are mounted")


def _hang(group: int, kind: int, code: bytes) -> None:
    instructions = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"Apache-2.0")
    load = struct.pack(
        "=IIQQIIQII16sII",
        _SOCK_ADDR,
        len(code) // 8,
        ctypes.addressof(instructions),
        ctypes.addressof(licence),
        *(0, 0, 0, 0, 0),
        b"lockstep_ports",
        0,
        kind,
    )
    loaded = _bpf(_LOAD, load)
    try:
        _bpf(_ATTACH, struct.pack("=IIII", group, loaded, kind, _REPLACEABLE))
    finally:
        os.close(loaded)


def _bpf(command: int, attributes: bytes) -> int:
    number = _BPF.get(os.uname().machine)
    if number is None:
        raise OSError(0, f"the BPF call is not known for {os.uname().machine}")
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    result: int = libc.syscall(number, command, buffer, len(attributes))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"BPF: {os.strerror(code)}")
    return result
