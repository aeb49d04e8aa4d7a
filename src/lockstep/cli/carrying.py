"""The code of a job: which directory goes with it, sent before it, owned by it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import field, structs

from lockstep.api.code import Code
from lockstep.api.imageless import NO_IMAGE
from lockstep.api.names import NODE_KIND_LABEL
from lockstep.api.resource import Resource
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.wire import Json, Wire, to_builtins
from lockstep.cli.connect import Session
from lockstep.cli.failure import BadInput
from lockstep.cli.flags import Carry
from lockstep.cli.output import note
from lockstep.kube.code.sending import Bundle, bundle, names_a_file
from lockstep.kube.code.store import upload
from lockstep.kube.code.tree import BadCode
from lockstep.kube.errors import Forbidden

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class _Info(Wire, frozen=True):
    boot_id: str = field(name="bootID", default="")


class _Status(Wire, frozen=True):
    node_info: _Info = _Info()


class _Node(Wire, frozen=True):
    status: _Status = _Status()


_NODES: Final = Resource("", "v1", "nodes", "Node", False, _Node)


async def carry(
    session: Session, objects: Sequence[Json], how: Carry, here: str
) -> dict[str, bytes]:
    """Write the code into the jobs among *objects*, and send what the cluster lacks of it.

    *here* is the directory that they run in unless they say otherwise; empty for none. Returned is
    what the jobs are to own.

    Raises:
        BadInput: when the directory cannot be sent.
    """
    jobs = [obj for obj in objects if obj["kind"] == TRAINING_JOBS.kind]
    mains = [r["template"]["spec"]["containers"][0] for job in jobs for r in job["spec"]["roles"]]
    carried = how.code is not None
    if how.no_code or not jobs or not (carried or _fits(jobs, mains, here)):
        return {}
    if not carried:
        images = any(one.get("image") not in (None, "", NO_IMAGE) for one in mains)
        carried = images or not await _on_this_machine(session)
    root = how.code or Path(here)
    try:
        found = bundle(root, carried=carried)
    except BadCode as error:
        if not carried:
            return {}  # the job runs in it, whether it can be recorded or not
        raise BadInput(f"--code {root}: {error}", error.remedy) from error
    for job in jobs:
        _write(job, found.code, here)
    try:
        await _send(session, jobs, found)
    except Forbidden:
        if carried:
            raise
        for job in jobs:  # the list of its packages is no reason to refuse a job
            job["spec"]["code"] = {**job["spec"]["code"], "packages": ""}
        return {}
    return found.parts


def _fits(jobs: Sequence[Json], mains: Sequence[Json], here: str) -> bool:
    """Tell whether the jobs run something of the present directory, in no other one."""
    if not here or any(job["spec"].get("simulated") for job in jobs):
        return False
    if any(one.get("workingDir", here) != here for one in mains):
        return False
    return any(names_a_file(one.get("command") or [], Path(here)) for one in mains)


def _write(job: Json, code: Code, here: str) -> None:
    mains = [role["template"]["spec"]["containers"][0] for role in job["spec"]["roles"]]
    if code.parts:
        for one in mains:
            if one.get("workingDir") == here:
                del one["workingDir"]
        # A directory that was asked for is where the code goes.
        given = [one["workingDir"] for one in mains if "workingDir" in one]
        code = structs.replace(code, directory=given[0]) if given else code
    job["spec"]["code"] = to_builtins(code)


async def _on_this_machine(session: Session) -> bool:
    """Tell whether pods without an image run on this machine and on no other."""
    try:
        nodes = await session.client.list(_NODES, label_selector=f"{NODE_KIND_LABEL}=process")
        boot = _BOOT.read_text().strip()
    except (Forbidden, OSError):
        return False
    return all(one.status.node_info.boot_id == boot for one in nodes.items)


async def _send(session: Session, jobs: Sequence[Json], found: Bundle) -> None:
    for doubt in found.warnings:
        note(f"warning: code: {doubt}")
    spaces = sorted({job["metadata"].get("namespace") or session.namespace for job in jobs})
    size = sum([await upload(session.client, space, found.parts) for space in spaces])
    if found.code.parts:
        told = f"{size / 1e3:.1f} kB sent" if size else "the cluster has it"
        note(f"code: {found.code.files} files, {found.code.size / 1e3:.1f} kB; {told}")
