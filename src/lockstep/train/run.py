"""``lockstep-run -- COMMAND``: starts a pod's ranks, outlives them, keeps their state in memory.

It is the pod's main process. What it does follows from :mod:`lockstep.train.member`; here are the
threads that see and act: one follows the world, one reports, one answers the ranks.
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from lockstep.train import collecting, preflight
from lockstep.train import ranks as processes
from lockstep.train.catalogue import NotStored
from lockstep.train.evidence import memory_kills, of_ranks
from lockstep.train.forking import ForkServer, python_of
from lockstep.train.member import Action, Exit, Member, Start, Stop
from lockstep.train.memory import Counter, Memory, TooLittleMemory
from lockstep.train.meters import Meters, suspected
from lockstep.train.mirror import Mirror
from lockstep.train.peers import Asked, NoCopy, Peers, fetch
from lockstep.train.place import NoPlace, Place, key, runtime_directory
from lockstep.train.probes import reading
from lockstep.train.saving import Saving
from lockstep.train.server import Refused, Server, keep_following
from lockstep.train.state import Json
from lockstep.train.telemetry import Reading

REPORT_EVERY = 5.0
LOOK_EVERY = 0.5
"""Seconds between two looks at whether a rank may hang."""
ASK_EVERY = 10.0
_RETRY = 0.5
_USAGE = "usage: lockstep-run -- COMMAND [ARGUMENT ...]"
_STOPPED = 128 + signal.SIGTERM


def main() -> None:
    """Run the launcher; its exit code is that of the pod."""
    command = sys.argv[1:]
    if command == ["--collect"]:
        sys.exit(collecting.main())
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        print(_USAGE, file=sys.stderr)
        sys.exit(2)
    try:
        place = Place.read(os.environ)
    except NoPlace as error:
        # Outside a job: the command as it is.
        print(f"lockstep-run: no job here ({error}): runs the command alone", file=sys.stderr)
        os.execvp(command[0], command)  # noqa: S606  the user's own command
    sys.exit(Launcher(place, command).run())


class Launcher:
    """The shell around a member: events in, actions out."""

    def __init__(self, place: Place, command: Sequence[str]) -> None:
        self.place, self.command = place, command
        self.member, self.memory = Member(), Memory()
        self.directory = runtime_directory()
        self.saving = Saving(os.environ, self.memory, python_of(self.command, os.environ))
        self.meters = Meters(self.directory)
        self.counter = Counter(self.directory, self.memory, self.saving.save)
        self.bin = processes.torchrun_directory(self.directory)
        self.probes = self.directory / "probes"
        self.probes.mkdir()
        self.forks = ForkServer(self.directory, self.command)
        self.ranks: processes.Ranks | None = None
        self.code: int | None = None
        self._key = key(place)
        self.peers = Peers(place.address, self._key, self.memory) if self._key else None
        self.mirror = Mirror(self.memory, self._key)
        self._which: object = None
        """The ranks that are waited for: events of earlier ones may still come."""
        self._variables: dict[str, str] = {}
        self._said: Json = {}
        self._world: Json = {}
        self._hang: list[Json] = []
        self._memory_kills = 0
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._told = threading.Condition()
        self._news = False
        self._notice = ""

    def run(self) -> int:
        """Take part until the world is left; return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._events.put(("terminate",)))
        follower = Server(self.place)
        self._tell()
        self._thread(self.counter.serve)
        self._thread(keep_following, follower, self._changed, lambda: False)
        self.saving.start()
        self._thread(self._report)
        self._thread(self._look)
        if self.peers is not None:
            self._thread(self.peers.serve)
            self._thread(self.mirror.run)
        self._watch_for_notices()
        try:
            while self.code is None:
                kind, *rest = self._events.get()
                getattr(self, f"_on_{kind}")(*rest)
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)
        return self.code

    def _thread(self, target: Any, *args: Any) -> None:
        threading.Thread(target=target, args=args, daemon=True).start()

    def _changed(self, there: Json) -> None:
        self._events.put(("world", there))

    def _watch_for_notices(self) -> None:
        if named := os.environ.get("LOCKSTEP_SPOT_NOTICE", ""):
            # With HTTP, and rarely wanted.
            from lockstep.train import notices

            notices.watch(named, lambda said: self._events.put(("noticed", said)))

    # Events

    def _on_noticed(self, said: str) -> None:
        print(f"lockstep-run: this machine goes away: {said}", file=sys.stderr, flush=True)
        self._notice = said
        # Every step counts now.
        self.mirror.hurry()
        self._tell()
        self.saving.save_all()

    def _on_world(self, there: Json) -> None:
        self._world = json.loads(there["data"]["world"])
        # What is stored once for all ranks has to be the same in all of them.
        self.saving.shared = bool(self._world.get("replicated"))
        self.saving.replicated = self.saving.shared and bool(self._world.get("alike"))
        self.mirror.follow(self.place, self._world)
        seated = processes.is_seated(self.place, self._world)
        if not seated or (not self.member.generation and self._world["generation"] > 1):
            # A spare, or in place of a lost pod: it is to be quick.
            self._import_ahead()
        self._act(self.member.see(self._world, seated))

    def _import_ahead(self) -> None:
        if not self.forks.started:
            env = {**os.environ, **self._observing()}
            # The pod's own variables would make the server a rank that tells its steps.
            for name in ("RANK", "LOCKSTEP_ALONE"):
                env.pop(name, None)
            self.forks.start(env, self.place.processes)

    def _on_ended(self, generation: int, local: int, code: int, line: str) -> None:
        if generation != self.member.generation or self.ranks is None:
            return
        rank = int(self._variables["LOCKSTEP_FIRST_RANK"]) + local
        ended = {"rank": rank, "at": time.time(), "line": line}
        ended |= {"signal": -code} if code < 0 else {"code": code}
        if code == -signal.SIGKILL and memory_kills() > self._memory_kills:
            ended["oom"] = True
        self._act(self.member.failed(ended))

    def _on_gone(self, which: object) -> None:
        if which is self._which:
            self.ranks = None
            self._act(self.member.gone())

    def _on_terminate(self) -> None:
        if self.ranks is None:
            self._leave()
            return
        self.ranks.stop(grace=3600)
        self.member.state = "Stopping"
        # At once: ranks may take all of the pod's grace to end. Then what they did meanwhile.
        self.saving.save_all()
        self._events.put(("leave_when_gone",))

    def _on_leave_when_gone(self) -> None:
        while self.ranks is not None:
            kind, *rest = self._events.get()
            if kind == "gone":
                self._on_gone(*rest)
        self._leave()

    def _leave(self) -> None:
        """Save what there is, for the pod that goes on from here, and end."""
        self.saving.save_all()
        self.code = _STOPPED

    # Actions

    def _act(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Start):
                self._start(action.world)
            elif isinstance(action, Stop):
                if self.ranks is not None:
                    self.ranks.stop()
            elif isinstance(action, Exit):
                self.code = action.code
            else:
                self._tell()

    def _start(self, world: Json) -> None:
        self.memory.first.clear()
        self.memory.forget_after(world.get("resume"))
        stored = self._fetched(world)
        if stored is None:
            return
        self.saving.restarted(int(world.get("restarts", 0)))
        self.saving.seated(processes.seat(self.place, world))
        own = processes.node_variables(self.place, world, self.counter.path)
        path = f"{self.bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        note = self.directory / f"ended-{self.member.generation}"
        own |= self._observing()
        own["LOCKSTEP_STORED"] = stored
        own["LOCKSTEP_LOSSES"] = json.dumps(self.meters.losses(self.place.processes))
        if self.memory.forgotten:
            own["LOCKSTEP_CAPTURE"] = "off"
        own |= self.forks.variables()
        self._variables = {**os.environ, **own, "PATH": path, "LOCKSTEP_NOTE": str(note)}
        if wrong := preflight.wrong(os.environ, processes.seat(self.place, world)):
            self._without(world, 0, wrong)
            return
        self.meters.begin(self.member.generation)
        collecting.note(self.directory, self.place, self.member.generation, own)
        reading.forget(self.probes)
        generation, which = self.member.generation, object()

        def ended(local: int, code: int, line: str) -> None:
            self._events.put(("ended", generation, local, code, line))

        def gone() -> None:
            self._events.put(("gone", which))

        self._which, self._memory_kills = which, memory_kills()
        self.ranks = processes.Ranks(self.command, self._variables, ended=ended, gone=gone)

    def _observing(self) -> dict[str, str]:
        meters = self.meters.variables(dict(os.environ))
        return {**meters, **reading.variables(os.environ, self.probes)}

    def _fetched(self, world: Json) -> str | None:
        """Get what local ranks lack of the step that all go on from; None where that fails.

        Return the directory that ranks read it from themselves; empty where they need none.
        """
        step, sources = world.get("resume"), world.get("sources", [])
        if step is None:
            return ""
        if world.get("stored"):
            try:
                return str(self.saving.find(step))
            except NotStored as error:
                self._without(world, 0, str(error))
                return None
        mine = processes.seat(self.place, world)
        own = mine.first if world.get("own") else None
        for local in self.memory.lacks(step, self.place.processes, own):
            why, rank = "no launcher has a copy", mine.first + local
            for source in sources:
                try:
                    make = partial(self.memory.segment, local)
                    asked = Asked(step, None if own is None else rank)
                    got = fetch(source, self._key, asked, make, others=sources)
                    self.memory.belongs(local, rank, mine.size, bool(got["sharded"]))
                    why = ""
                    break
                except (NoCopy, TooLittleMemory) as error:
                    why = str(error)
            if why:
                self._without(world, local, f"step {step} cannot be had: {why}")
                return None
        return ""

    def _without(self, world: Json, local: int, line: str) -> None:
        """Tell that a rank cannot go on for want of its state."""
        rank = processes.seat(self.place, world).first + local
        ended = {"rank": rank, "at": time.time(), "code": 1, "line": line}
        self._act(self.member.failed(ended))
        self._act(self.member.gone())

    # The report

    def _tell(self) -> None:
        with self._told:
            self._said = self._words()
            self._news = True
            self._told.notify()

    def _report(self) -> None:
        server = Server(self.place)
        while True:
            with self._told:
                self._told.wait_for(lambda: self._news, REPORT_EVERY)
                self._news = False
                said = dict(self._said)
            if (step := self.memory.progress()) is not None:
                said["step"] = step
            said |= {**self.memory.told(), **self.mirror.told(), **self.saving.told()}
            if ranks := self.meters.told(self.place.processes):
                said["ranks"] = ranks
                said["firstRank"] = int(self._variables.get("LOCKSTEP_FIRST_RANK", "0"))
            if self._hang:
                said["hang"] = self._hang
            if probes := reading.sheets(self.probes):
                said["probes"] = probes
            if self.memory.first:
                said["first"] = [one for _, one in sorted(self.memory.first.items())]
            try:
                server.report(said)
            except (OSError, http.client.HTTPException, Refused, ValueError):
                server.close()
                time.sleep(_RETRY)
                with self._told:
                    self._news = True

    def _look(self) -> None:
        """Report at once when a rank may hang, and its first step; if asked, what all wait in.

        A failure after a new step is the first in a row, and restarts without a delay.
        """
        before, asked_at, moved = False, 0.0, 0
        while True:
            time.sleep(LOOK_EVERY)
            now = time.monotonic()
            meters = self.meters.read(self.place.processes)
            suspect = any(suspected(one, now) for one in meters.values())
            done = self.memory.progress()
            if any(one.steps for one in meters.values()) or done is not None:
                # The ranks use torch and are under way: the next ones need not import it.
                self._import_ahead()
            generation = self.member.generation
            if moved != generation and self._has_stepped(meters.values(), done):
                moved = generation
                self._tell()
            asked = bool(self._world.get("asked")) and self.member.state == "Running"
            if asked and now - asked_at >= ASK_EVERY:
                asked_at = now
                first = int(self._variables.get("LOCKSTEP_FIRST_RANK", "0"))
                pids = {local: one.pid for local, one in meters.items()}
                self._hang = of_ranks(self.meters.ask, first, pids)
                self._tell()
            elif not asked and self._hang:
                self._hang, asked_at = [], 0.0
                self._tell()
            if suspect != before:
                before = suspect
                self._tell()

    def _has_stepped(self, meters: Iterable[Reading], done: int | None) -> bool:
        """Say whether a rank of the present generation has made a step."""
        if self.member.state != "Running":
            return False
        resumed = self._world.get("resume") or 0
        return any(one.steps for one in meters) or (done is not None and done > resumed)

    def _words(self) -> Json:
        member = self.member
        # While its ranks are ending it has nothing new to say of the generation.
        state = "Running" if member.state == "Stopping" else member.state
        said: Json = {"uid": self.place.uid, "generation": member.generation, "state": state}
        if self.peers is not None:
            said["address"] = self.peers.address
        if state == "Ready":
            said["snapshots"] = self.memory.snapshots(member.generation)
            said["stored"] = self.saving.stored()
        if self._notice:
            said["notice"] = self._notice
        if member.ended is not None:
            said["ended"] = member.ended
        return said


if __name__ == "__main__":
    main()
