"""Fetches the console's libraries from the npm registry, without Node: `python -m
tools.console.vendor`.

Each package is held to its integrity; the names that it imports by are turned into paths, for a
browser finds modules by path. What comes out is listed with its hash in ``versions.json``.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tarfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
TARGET = ROOT / "src/lockstep/console/page/vendor"
TEST_TARGET = ROOT / "tests/support/axe"
REGISTRY = "https://registry.npmjs.org"


@dataclass(frozen=True)
class Package:
    """A package, and which of its modules are taken under what name."""

    name: str
    version: str
    licence: str
    sha512: str
    modules: dict[str, str]


PACKAGES = (
    Package(
        "preact",
        "10.27.2",
        "MIT",
        "5SYSgFKSyhCbk6SrXyMpqjb5+MQBgfvEKE/OC+PujcY34sOpqtr+0AZQtPYx5IA6VxynQ7rUPCtKzyovpj9Bpg==",
        {"dist/preact.module.js": "preact.js", "hooks/dist/hooks.module.js": "hooks.js"},
    ),
    Package(
        "htm",
        "3.1.1",
        "Apache-2.0",
        "983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        {"dist/htm.module.js": "htm.js"},
    ),
    Package(
        "@preact/signals-core",
        "1.12.1",
        "MIT",
        "BwbTXpj+9QutoZLQvbttRg5x3l5468qaV2kufh+51yha1c53ep5dY4kTuZR35+3pAZxpfQerGJiQqg34ZNZ6uA==",
        {"dist/signals-core.module.js": "signals-core.js"},
    ),
    Package(
        "@preact/signals",
        "2.3.1",
        "MIT",
        "nyuRIGmcwM/HjvFHhN2xUWfyla9D4llHt+prWoxjQfD6b5prO7CFPlG/xjJkP31Oic4KQXfH9SIhJFP9cy4lmg==",
        {"dist/signals.module.js": "signals.js"},
    ),
)
TESTS_ALONE = (
    Package(
        "axe-core",
        "4.10.3",
        "MPL-2.0",
        "Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg==",
        {"axe.min.js": "axe.min.js"},
    ),
)
"""What only tests need; it is in no wheel."""
PATHS = {
    "preact": "./preact.js",
    "preact/hooks": "./hooks.js",
    "@preact/signals-core": "./signals-core.js",
}


def modules(package: Package, tarball: bytes) -> dict[str, bytes]:
    """Return the modules of a package by the name that they get, and its licence.

    Raises:
        ValueError: when the tarball is not the one that was reviewed.
    """
    found = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    if found != package.sha512:
        raise ValueError(f"{package.name} {package.version}: sha512 is {found}")
    taken = {**package.modules, "LICENSE": f"{package.name.replace('/', '-').strip('@')}.LICENSE"}
    with tarfile.open(fileobj=io.BytesIO(tarball)) as archive:
        return {
            name: _browser(archive.extractfile(f"package/{path}").read())  # type: ignore[union-attr]
            for path, name in taken.items()
        }


def _browser(text: bytes) -> bytes:
    text = re.sub(rb"\n?//# sourceMappingURL=.*", b"", text)
    for name, path in PATHS.items():
        text = text.replace(f'from"{name}"'.encode(), f'from"{path}"'.encode())
    return text


def take(packages: tuple[Package, ...], target: Path) -> None:
    """Write packages and ``versions.json`` into a directory."""
    target.mkdir(parents=True, exist_ok=True)
    listed = []
    for package in packages:
        short = package.name.rpartition("/")[2]
        url = f"{REGISTRY}/{package.name}/-/{short}-{package.version}.tgz"
        with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - a fixed https URL
            files = modules(package, answer.read())
        for name, content in files.items():
            (target / name).write_bytes(content)
        listed.append(about(package, files))
    (target / "versions.json").write_text(json.dumps(listed, indent=2) + "\n")


def about(package: Package, files: dict[str, bytes]) -> Json:
    """Return what is noted of a package and its files."""
    return {
        "package": package.name,
        "version": package.version,
        "licence": package.licence,
        "integrity": f"sha512-{package.sha512}",
        "files": {n: hashlib.sha256(c).hexdigest() for n, c in sorted(files.items())},
    }


def main() -> None:
    """Write all packages."""
    take(PACKAGES, TARGET)
    take(TESTS_ALONE, TEST_TARGET)


if __name__ == "__main__":
    main()
