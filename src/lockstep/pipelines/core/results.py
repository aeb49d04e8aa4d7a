"""What a step's pod says: how far it is, why it waits, what it gave."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any, Final

from lockstep.api.containers import ContainerStatus
from lockstep.api.core import SET_UP, Pod
from lockstep.api.dataset_cache import FETCHING
from lockstep.pipelines.core.nodes import there
from lockstep.pipelines.core.pods import FETCHER, KEEPER
from lockstep.pipelines.core.told import Seen

LARGEST: Final = 1 << 20
"""Most bytes of a step's results."""
_LOST: Final = frozenset(
    {"NodeLost", "NodeShutdown", "Terminated", "Preempting", "Evicted", "TerminationByKubelet"}
)
_WAITING: Final = frozenset({"ContainerCreating", "PodInitializing", ""})


def of_pod(pod: Pod, *, has_outputs: bool) -> Seen:
    """Return how the step that *pod* is does."""
    status = pod.status
    if status.phase == "Succeeded":
        return _gave(pod) if has_outputs else Seen("Succeeded")
    if status.phase == "Failed":
        return _failed(pod)
    if pod.metadata.deletion_timestamp is not None:
        # It ends through no fault of its own; what it comes to counts once it is over.
        return Seen("Running", "its pod is being deleted")
    started = any(one.state.running or one.state.terminated for one in status.container_statuses)
    if started:
        ready = all(one.ready for one in status.container_statuses)
        return Seen("Running", address=status.pod_ip if ready else "")
    return _why_waiting(pod)


def _why_waiting(pod: Pod) -> Seen:
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return Seen("Pending", condition.message or condition.reason)
    for one in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = one.state.waiting
        if waiting is not None and (waiting.message or waiting.reason not in _WAITING):
            words = f"{one.name}: {waiting.reason}: {waiting.message}"
            return Seen("Pending", words, stuck=FETCHING not in waiting.message)
    # A kubelet says of volumes and networks that it cannot set up only in events.
    bare = any(c.type == SET_UP and c.status == "False" for c in pod.status.conditions)
    return Seen("Pending", stuck=bare)


def _failed(pod: Pod) -> Seen:
    status = pod.status
    if status.reason in _LOST:
        return Seen("Lost", f"{status.reason}: {status.message}".rstrip(": "))
    for one in status.init_container_statuses:
        end = one.state.terminated
        if end is not None and end.exit_code and one.name == FETCHER:
            words = end.message.strip() or f"ended with {end.exit_code}"
            return Seen("Failed", f"inputs: {words}", exit_code=end.exit_code)
    for one in (*status.container_statuses, *status.init_container_statuses):
        end = one.state.terminated
        if end is not None and end.exit_code and one.name != KEEPER:
            return Seen("Failed", _words(one), exit_code=end.exit_code)
    return Seen("Failed", f"{status.reason}: {status.message}".strip(": ") or "its pod failed")


def _words(one: ContainerStatus) -> str:
    end = there(one.state.terminated)
    reason = "" if end.reason in ("", "Error") else f" ({end.reason})"
    said = end.message.strip()
    return f"{one.name} ended with {end.exit_code}{reason}" + (f": {said}" if said else "")


def _gave(pod: Pod) -> Seen:
    keeper = next((o for o in pod.status.init_container_statuses if o.name == KEEPER), None)
    end = None if keeper is None else keeper.state.terminated or keeper.last_state.terminated
    if end is None or (not end.message and end.exit_code):
        # Its results died with it; the step itself did its part.
        return Seen("Lost", "what uploads the outputs was killed")
    try:
        found = decode(end.message)
    except ValueError as error:
        return Seen("Failed", f"outputs cannot be read: {error}")
    if "error" in found:
        return Seen("Failed", f"outputs: {found['error']}")
    return Seen("Succeeded", outputs=found.get("outputs") or {})


def decode(message: str) -> dict[str, Any]:
    """Return what the keeper of a step's files said.

    Raises:
        ValueError: when it is cut off or too large.
    """
    if message.startswith("z:"):
        inflate = zlib.decompressobj()
        try:
            message = inflate.decompress(base64.b64decode(message[2:]), LARGEST).decode()
        except zlib.error as error:
            raise ValueError(str(error)) from error
        if inflate.unconsumed_tail:
            raise ValueError(f"more than {LARGEST} bytes")
    found = json.loads(message)
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found
