"""Locks that steps of several runs share: each is held by so many at once, in order of asking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Locks:
    """Which step holds which lock, and which wait; a step is ``RUN UID/STEP``."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, None]] = {}
        """By lock: its holders."""
        self.waiting: dict[str, dict[str, None]] = {}
        """By lock: those that wait for it, the first to have asked first."""

    def acquire(self, holder: str, wanted: Sequence[tuple[str, int]]) -> str:
        """Take all *wanted* locks, each with the most that hold it at once, or none of them.

        Return nothing when *holder* has them; else, in words, for which it waits.
        """
        for name, _ in wanted:
            if holder not in self.held.get(name, {}):
                self.waiting.setdefault(name, {}).setdefault(holder)
        for name, most in wanted:
            held = self.held.get(name, {})
            if holder in held:
                continue
            free = max(0, most - len(held))
            if holder not in [*self.waiting[name]][:free]:
                return f"waits for {name}, of which {len(held)} of {most} are held"
        for name, _ in wanted:
            self.restore(holder, [name])
        return ""

    def restore(self, holder: str, names: Iterable[str]) -> None:
        """Take note that *holder* has the locks *names*, as after a restart."""
        for name in names:
            self.held.setdefault(name, {})[holder] = None
            self._leave(self.waiting, name, holder)

    def release(self, holder: str) -> None:
        """Let go of all that *holder* has or waits for."""
        for kind in (self.held, self.waiting):
            for name in [name for name, holders in kind.items() if holder in holders]:
                self._leave(kind, name, holder)

    def drop(self, uid: str) -> None:
        """Let go of all that the run *uid* has or waits for."""
        mine = {
            holder
            for kind in (self.held, self.waiting)
            for holders in kind.values()
            for holder in holders
            if holder.startswith(f"{uid}/")
        }
        for holder in mine:
            self.release(holder)

    def _leave(self, kind: dict[str, dict[str, None]], name: str, holder: str) -> None:
        holders = kind.get(name)
        if holders is not None:
            holders.pop(holder, None)
            if not holders:
                del kind[name]
