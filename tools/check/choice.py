"""Choose the unit tests that a change can break, nearest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tools.check.graph import module_of

ALL = {
    "pyproject.toml": "it configures pytest and the environment",
    "requirements.lock": "it sets the versions of all packages",
    "tests/conftest.py": "every test runs with it",
}


@dataclass(frozen=True)
class Chosen:
    """A test file to run, how many imports lie between it and a change, and the change."""

    path: str
    distance: int
    cause: str


@dataclass(frozen=True)
class Choice:
    """The test files to run, nearest first, and why these are all of them where they are."""

    tests: tuple[Chosen, ...]
    all_because: str | None = None


def choose(
    changed: Iterable[str],
    users: Callable[[str], Iterable[str]],
    sources: Mapping[str, str],
) -> Choice:
    """Return the unit tests that changed or that use a changed file.

    `users` gives the modules that use a module, `sources` the text of each Python file by path.
    """
    changed = list(changed)
    tests = {module_of(path): path for path in sources if is_unit_test(path)}
    for path in changed:
        if path in ALL:
            cause = f"{path} changed, and {ALL[path]}"
            return Choice(tuple(Chosen(test, 1, path) for test in tests.values()), cause)
    reached = _reached(_starts(changed, sources), users)
    found = [
        Chosen(tests[module], distance, cause)
        for module, (distance, cause) in reached.items()
        if module in tests
    ]
    return Choice(tuple(sorted(found, key=lambda one: (one.distance, one.path))))


def is_unit_test(path: str) -> bool:
    """Say whether a path is a file of unit tests."""
    name = PurePosixPath(path).name
    return path.startswith("tests/unit/") and name.startswith("test_") and name.endswith(".py")


def _starts(changed: Iterable[str], sources: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """Return the modules where the search begins: changed ones, and readers of changed files."""
    starts: dict[str, tuple[int, str]] = {}
    for path in changed:
        module = module_of(path)
        if module is not None:
            starts[module] = (0, path)
    for path in changed:
        if module_of(path) is None:
            for reader in _readers(path, sources):
                starts.setdefault(reader, (1, path))
    return starts


def _readers(path: str, sources: Mapping[str, str]) -> Iterable[str]:
    """Yield the modules that name a file which is no module, or in quotes a folder it lies in."""
    place = PurePosixPath(path)
    folders = [f'"{part}"' for part in place.parent.parts if part not in ("src", "lockstep", ".")]
    for source, text in sources.items():
        if place.name in text or any(folder in text for folder in folders):
            module = module_of(source)
            if module is not None:
                yield module


def _reached(
    starts: Mapping[str, tuple[int, str]], users: Callable[[str], Iterable[str]]
) -> dict[str, tuple[int, str]]:
    """Return all modules that use one of the starts, with the fewest steps to it."""
    reached = dict(sorted(starts.items(), key=lambda item: item[1][0]))
    layer = list(reached)
    while layer:
        following = []
        for module in layer:
            distance, cause = reached[module]
            for user in users(module):
                if user not in reached or reached[user][0] > distance + 1:
                    reached[user] = (distance + 1, cause)
                    following.append(user)
        layer = following
    return reached
