"""Calls in which a device library ended the agent: noted as it dies, and not made again.

A fault in C ends the whole process, also from a thread of one card. Python's fault handler writes
down the thread's calls at that moment; the agent that starts next reads them.
"""

from __future__ import annotations

import faulthandler
import logging
import re
from pathlib import Path
from typing import Final

import msgspec

from lockstep.api.wire import Wire
from lockstep.keys.files import BOOT_ID, replace_file

log = logging.getLogger(__name__)

_CALL: Final = re.compile(r'pynvml\.py", line \d+ in (nvml\w+)')


class _File(Wire, frozen=True):
    boot: str = ""
    calls: list[str] = []


def noted(directory: Path, boot_id: Path = BOOT_ID) -> list[str]:
    """Return the calls that ended this agent since the boot; note the next one from now on."""
    boot = boot_id.read_text().strip() if boot_id.exists() else ""
    trace, kept = directory / "lockstep-crash.txt", directory / "lockstep-crashed-calls.json"
    try:
        calls = _before(kept, boot)
        last = _CALL.search(trace.read_text()) if trace.exists() else None
        if last is not None and last[1] not in calls:
            calls = [*calls, last[1]]
            replace_file(kept, msgspec.json.encode(_File(boot, calls)))
        directory.mkdir(parents=True, exist_ok=True)
        # The fault handler keeps the file's number, so the file stays open with the process.
        faulthandler.enable(trace.open("w"), all_threads=False)
    except OSError as error:
        log.warning("%s cannot be used: %s. A crash of NVML is met again.", directory, error)
        return []
    for call in calls:
        log.error("NVML crashed in %s; it is not called until the node is booted again", call)
    return calls


def _before(kept: Path, boot: str) -> list[str]:
    try:
        found = msgspec.json.decode(kept.read_bytes(), type=_File)
    except (FileNotFoundError, msgspec.DecodeError):
        return []
    return found.calls if found.boot == boot else []
