"""NVIDIA's Xids by number: class and immediate action follow NVIDIA's catalogue.

https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lockstep.api.diagnosis import Act, Class
from lockstep.health.core.signature import Kind, Signature, Verdict

_Row = tuple[str, Class, Act, float, str]

_SPECIAL: Final[tuple[_Row, ...]] = (
    # What the line says beyond the number decides; these come before the plain numbers.
    (r"31, .*UNRECOGNIZED_CLIENT", "software", "isolate_node", 0.8, "the GPU's memory unit wedged"),
    (r"14[4-8], .*[Nn]onfatal", "hardware", "observe", 0.7, "a non-fatal NVLink error"),
    (r"14[4-8], .*Fatal", "hardware", "reset_gpu", 0.9, "a fatal NVLink error"),
    (r"154, .*\(Node Reboot", "hardware", "isolate_node", 0.95, "the driver asks for a reboot"),
    (r"154, .*\(Drain", "hardware", "reset_gpu", 0.9, "the driver asks to drain and reset"),
    (r"154, .*\(GPU Reset", "hardware", "reset_gpu", 0.95, "the driver asks for a reset"),
    (r"154, .*\(None\)", "hardware", "observe", 0.9, "the driver asks for nothing"),
)
_NUMBERS: Final[tuple[tuple[str, Class, Act, float, str], ...]] = (
    ("8", "software", "restart_in_place", 0.5, "the GPU stopped serving a channel in time"),
    ("11 25 32", "user", "restart_in_place", 0.6, "an invalid push buffer"),
    ("13", "user", "stop_and_tell_user", 0.75, "the kernel raised an exception on the GPU"),
    ("31", "user", "stop_and_tell_user", 0.75, "the program accessed an illegal GPU address"),
    ("37 38 44 66 67", "software", "observe", 0.6, "a firmware or driver access error"),
    (
        "39 40 41 70 71 72 75 76 77 85 126 127 128 129 130 131 132 133 134 135",
        "hardware",
        "restart_in_place",
        0.5,
        "a copy engine error",
    ),
    ("43", "user", "observe", 0.5, "the GPU stopped a channel of the program"),
    ("45", "unknown", "observe", 0.3, "the driver cleaned up after another error"),
    ("46", "hardware", "reset_gpu", 0.9, "the GPU stopped processing"),
    ("48", "hardware", "reset_gpu", 0.95, "a double-bit ECC error"),
    ("54", "hardware", "isolate_node", 0.95, "auxiliary power is not connected"),
    ("62", "hardware", "reset_gpu", 0.9, "the power management unit halted"),
    ("63", "hardware", "observe", 0.9, "a row remapping was recorded"),
    ("64", "hardware", "isolate_node", 0.95, "a row remapping failed"),
    ("68 82 83 84 86 88 89 96 97 98", "hardware", "restart_in_place", 0.5, "a video engine error"),
    ("69", "user", "stop_and_tell_user", 0.6, "a graphics engine class error"),
    ("74", "hardware", "reset_gpu", 0.9, "an NVLink error"),
    ("78", "software", "isolate_node", 0.7, "a vGPU could not start"),
    ("79", "hardware", "isolate_node", 0.98, "the GPU has fallen off the bus"),
    ("80", "user", "restart_in_place", 0.6, "corrupted data was sent to the GPU"),
    ("92", "hardware", "observe", 0.8, "a high rate of single-bit ECC errors"),
    ("94", "hardware", "reset_gpu", 0.9, "a contained memory error"),
    ("95", "hardware", "reset_gpu", 0.95, "an uncontained memory error"),
    ("109", "hardware", "reset_gpu", 0.8, "a context switch timed out"),
    ("110", "hardware", "reset_gpu", 0.8, "a security fault"),
    ("119", "hardware", "reset_gpu", 0.9, "the GPU's system processor did not answer"),
    ("120", "hardware", "reset_gpu", 0.9, "an error of the GPU's system processor"),
    ("121", "hardware", "observe", 0.8, "a corrected chip-to-chip link error"),
    ("136", "hardware", "reset_gpu", 0.9, "link training failed"),
    ("137", "user", "observe", 0.5, "an NVLink privilege error"),
    ("140", "hardware", "reset_gpu", 0.95, "an unrecovered ECC error"),
    ("143", "hardware", "isolate_node", 0.9, "the GPU could not be initialised"),
    ("144 145 146 147 148", "hardware", "observe", 0.6, "an NVLink error"),
    ("149", "hardware", "reset_gpu", 0.85, "an NVLink went down"),
    ("150", "hardware", "reset_gpu", 0.85, "a watchdog of the NVLink firmware fired"),
    ("151", "software", "isolate_node", 0.7, "a key rotation failed"),
    ("156", "hardware", "reset_gpu", 0.9, "a resource was retired"),
    ("157", "hardware", "isolate_node", 0.9, "the retirement of a resource failed"),
    ("158 167", "hardware", "isolate_node", 0.9, "a fatal timeout of the GPU or PCIe"),
    ("168 171 172 175", "hardware", "reset_gpu", 0.9, "uncorrectable memory errors"),
    ("173", "hardware", "isolate_node", 0.9, "a fatal chip-to-chip link error"),
    ("176", "hardware", "observe", 0.8, "a storm of corrected PCIe errors"),
)
CASCADES: Final = frozenset({"43", "45", "154"})


_PREFIX: Final = r"NVRM: Xid \((?:PCI:)?[0-9a-fA-F:.]+\): "
"""How a line with an Xid begins."""


def signatures() -> Iterator[Signature]:
    """Return the signature of each row; the last takes any other number."""
    for rest, class_, action, sure, words in _SPECIAL:
        number = rest.split(",")[0].replace("14[4-8]", "144")
        verdict = Verdict(class_, action, sure, _kind(number))
        yield Signature(rf"{_PREFIX}({rest})", verdict, f"Xid {number}: {words}", "kernel")
    for numbers, class_, action, sure, words in _NUMBERS:
        for number in numbers.split():
            pattern = rf"(?:{_PREFIX}|XidCriticalError: Xid=){number}(?:[,\s]|$)"
            verdict = Verdict(class_, action, sure, _kind(number))
            yield Signature(pattern, verdict, f"Xid {number}: {words}", "kernel")
    unknown = Verdict("unknown", "observe", 0.3, "weak")
    yield Signature(_PREFIX + r"(\d+)", unknown, "Xid {}: not in the catalogue", "kernel")


def _kind(number: str) -> Kind:
    return "cascade" if number in CASCADES else ""
