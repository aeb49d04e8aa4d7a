"""What ``lockstep delete`` takes besides names: labels, a file, all, or what has ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from lockstep.api.resource import Resource
from lockstep.api.training import TRAINING_JOBS
from lockstep.cli import kinds
from lockstep.cli.connect import Session
from lockstep.cli.failure import BadInput, usage
from lockstep.cli.naming import resolve_all
from lockstep.cli.views.jobs import ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The options."""

    selector: Annotated[str, "--selector", "-l", "Those with these labels."] = ""
    everything: Annotated[bool, "--all", "All of the kind in the namespace; jobs by default."] = (
        False
    )
    ended: Annotated[bool, "--ended", "Jobs that have ended."] = False
    file: Annotated[Path | None, "--file", "-f", "The objects in this file."] = None

    def read(self, words: list[str]) -> Wanted:
        """Return what is to be deleted, as far as the command line says it.

        Raises:
            BadParameter: when it says nothing, or too much.
        """
        chosen = bool(self.selector) or self.everything or self.ended
        with usage("NAME"):
            if self.file is not None and (words or chosen):
                raise ValueError("choose one of names, -f FILE and labels")
            if self.file is None and not words and not chosen:
                raise ValueError("name jobs, KIND/NAME, or use -l, --all, --ended or -f FILE")
            if not chosen:
                return Wanted(self, kinds.several(words) if words else [])
            kind = kinds.wanted(words)
            if not isinstance(kind, tuple):
                raise ValueError("-l, --all and --ended choose by themselves; leave names out")
            if self.ended and kind[1] is not TRAINING_JOBS:
                raise ValueError("--ended is about jobs")
        return Wanted(self, [], kind)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be deleted: names, or what the options choose among a kind."""

    options: Selection
    names: list[kinds.Reference]
    kind: tuple[str, Resource[Any]] | None = None

    async def found(self, session: Session) -> list[tuple[Session, kinds.Reference]]:
        """Return the objects, each with the namespace that it is in.

        Raises:
            BadInput: when the file cannot be read.
        """
        if self.options.file is not None:
            return await _in_file(session, self.options.file)
        if self.kind is None:
            return [(session, ref) for ref in await resolve_all(session, self.names)]
        short, res = self.kind
        labels = self.options.selector
        items = (await session.client.list(res, session.home(res), label_selector=labels)).items
        if self.options.ended:
            items = [one for one in items if ended(one)]
        return [(session, kinds.Reference(short, one.metadata.name, res)) for one in items]


async def _in_file(session: Session, file: Path) -> list[tuple[Session, kinds.Reference]]:
    from lockstep.cli.load import documents
    from lockstep.cli.served_kinds import find_resource

    found = []
    for document in documents(file):
        obj = document.obj
        metadata = obj.get("metadata") or {}
        if not metadata.get("name"):
            raise BadInput(f"{document.origin}: has no name", "delete such a one by its name")
        res = await find_resource(session, obj["apiVersion"], obj["kind"])
        home = replace(session, namespace=metadata.get("namespace") or session.namespace)
        found.append((home, kinds.Reference(kinds.short_name(res), metadata["name"], res)))
    return found
