"""What the node's network cards count, as metrics with the pods that hold them.

From sysfs: counters of RDMA ports and of interfaces. From the driver, as ``ethtool -S`` asks it:
pause frames, which is where a lossless network shows that it is congested.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import re
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from lockstep.api import names
from lockstep.api.core import Pod
from lockstep.devices.core.holders import Holder, holders
from lockstep.devices.core.model import Port

ROOT: Final = Path("/")
RDMA: Final = (
    "duplicate_request",
    "link_downed",
    "link_error_recovery",
    "local_ack_timeout_err",
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "port_rcv_data",
    "port_rcv_errors",
    "port_xmit_data",
    "port_xmit_discards",
    "port_xmit_wait",
    "rnr_nak_retry_err",
    "roce_slow_restart",
    "rp_cnp_handled",
    "symbol_error",
)
INTERFACE: Final = ("rx_bytes", "tx_bytes", "rx_errors", "tx_errors", "rx_dropped", "tx_dropped")
DRIVER: Final = re.compile(
    r"(?:rx|tx)_(?:prio\d_pause|prio\d_pause_duration|pause_ctrl_phy|global_pause|discards_phy)"
    r"|rx_(?:symbol_err|crc_errors)_phy"
)
_WORDS: Final = ("port_rcv_data", "port_xmit_data")
"""Counted in words of four bytes."""
_ETHTOOL: Final = 0x8946
_INFO, _STRINGS, _STATS = 0x37, 0x1B, 0x1D
_SET: Final = 1
_NAME: Final = 32
MOST: Final = 16384
"""Counters that a driver may have."""


def read(port: Port, root: Path = ROOT) -> dict[str, int]:
    """Return the counters of one card, as far as it has them."""
    found: dict[str, int] = {}
    for folder in ("counters", "hw_counters"):
        place = root / "sys/class/infiniband" / port.name / "ports/1" / folder
        for name in RDMA:
            if (value := _number(place / name)) is not None:
                found[name] = 4 * value if name in _WORDS else value
    for interface in port.interfaces:
        place = root / "sys/class/net" / interface / "statistics"
        for name in INTERFACE:
            if (value := _number(place / name)) is not None:
                found[name] = found.get(name, 0) + value
        if root == ROOT:
            for name, value in of_driver(interface).items():
                if DRIVER.fullmatch(name):
                    found[name] = found.get(name, 0) + value
    return found


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def of_driver(interface: str) -> dict[str, int]:
    """Return what the driver of *interface* counts; nothing where it counts nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, contextlib.suppress(OSError):
        head = array.array("B", struct.pack("=IIQI", _INFO, 0, 1 << _SET, 0))
        _call(one, interface, head)
        _, _, mask, count = struct.unpack("=IIQI", head.tobytes())
        if not mask or not 0 < count <= MOST:
            return {}
        texts = array.array("B", struct.pack("=III", _STRINGS, _SET, count))
        texts.frombytes(bytes(count * _NAME))
        _call(one, interface, texts)
        values = array.array("B", struct.pack("=II", _STATS, count) + bytes(8 * count))
        _call(one, interface, values)
        raw = texts.tobytes()[12:]
        titles = [raw[at : at + _NAME].split(b"\0")[0] for at in range(0, len(raw), _NAME)]
        numbers = struct.unpack(f"={count}Q", values.tobytes()[8 : 8 + 8 * count])
        return {
            title.decode(errors="replace").strip(): value
            for title, value in zip(titles, numbers, strict=True)
        }
    return {}


def _call(one: socket.socket, interface: str, block: array.array[int]) -> None:
    address, _ = block.buffer_info()
    request = struct.pack("16sP", interface.encode()[:15], address)
    fcntl.ioctl(one.fileno(), _ETHTOOL, request + bytes(40 - len(request)))


def exposition(node: str, ports: Iterable[Port], pods: Iterable[Pod], root: Path = ROOT) -> bytes:
    """Return the text of the metrics of *ports*, each with the labels of those that hold it."""
    held = holders(pods, names.NICS, names.NICS_ANNOTATION)
    lines: dict[str, list[str]] = {}
    for port in ports:
        labels = [_labels(node, port, one) for one in held.get(port.index, [])]
        for name, value in read(port, root).items():
            for one in labels or [_labels(node, port, None)]:
                lines.setdefault(name, []).append(f"{{{one}}} {value}\n")
    return "".join(_text(lines)).encode()


def _text(lines: Mapping[str, list[str]]) -> Iterator[str]:
    for name, some in sorted(lines.items()):
        full = f"lockstep_nic_{name}_total"
        yield f"# HELP {full} What the network card counts as {name}.\n# TYPE {full} counter\n"
        yield from (full + rest for rest in some)


def _labels(node: str, port: Port, holder: Holder | None) -> str:
    own = {"node": node, "nic": port.name, "device": ",".join(port.interfaces)}
    whole = own | (holder.labels() if holder is not None else {})
    return ",".join(f'{name}="{_quoted(value)}"' for name, value in whole.items())


def _quoted(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
