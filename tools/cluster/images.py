"""The images of a cluster, built by buildah from Containerfiles and pushed to its registry.

``deploy/Containerfile`` says what Lockstep's image is. Its base here is Debian with Python, made
by debootstrap, as registries of the internet may be out of reach. What is built stays in the
user's cache, step by step, so that a change of source builds the last steps alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.cluster import layout, programs

HERE: Final = Path(__file__).parent
SUITE: Final = "trixie"
BASE: Final = f"localhost/debian-python:{SUITE}"
_PACKAGES: Final = "ca-certificates,python3,python3-venv"
_OF_PIP: Final = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT", "PIP_DEFAULT_TIMEOUT")
_TRUSTED: Final = Path("/etc/ssl/certs/ca-certificates.crt")
_MEMORY: Final = Path("/dev/shm")  # noqa: S108
NEEDED: Final = ("buildah", "debootstrap")


@dataclass(frozen=True)
class Image:
    """A built image: its name, and the tag that follows from its content."""

    name: str
    tag: str

    @property
    def reference(self) -> str:
        """Return how nodes and pods call it."""
        return f"{layout.REGISTRY}/{self.name}:{self.tag}"


def buildah(*words: str, quiet: bool = False) -> str:
    """Run buildah on the images of the user's cache and return what it says."""
    store = layout.cache() / "cluster-images"
    # Its mounts are gone with it, even where it is killed.
    places = ["--root", f"{store}/root", "--runroot", f"{store}/run"]
    command = ["unshare", "--mount", "buildah", *places]
    done = subprocess.run(
        [*command, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if quiet else None,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"buildah {words[0]} failed: {done.stderr or done.stdout[-2000:]}")
    return done.stdout.strip()


def build(name: str, containerfile: Path, context: Path, *more: str) -> Image:
    """Build an image, taking every step from the cache that did not change."""
    with tempfile.NamedTemporaryFile() as file:
        buildah(
            *("bud", "--isolation", "chroot", "--layers", "--format", "oci"),
            *("--iidfile", file.name, "-t", f"localhost/{name}", "-f", str(containerfile)),
            *more,
            str(context),
        )
        return Image(name, Path(file.name).read_text().rpartition(":")[2][:12])


def push(image: Image, port: int) -> None:
    """Send an image to the registry at a loopback port, unless it is there."""
    where = f"docker://127.0.0.1:{port}/{image.name}:{image.tag}"
    buildah(
        "push", "--tls-verify=false", "--disable-compression", "-q", image.tag, where, quiet=True
    )


def small() -> dict[str, Image]:
    """Return the images that a cluster is itself made of."""
    found = {}
    for name, program in (("pause", programs.pause()), ("coredns", programs.COREDNS.path())):
        found[name] = build(
            name,
            HERE / "program.Containerfile",
            program.parent,
            *("--build-arg", f"PROGRAM={program.name}"),
        )
    return found


def lockstep() -> Image:
    """Build Lockstep's image as ``deploy/Containerfile`` says."""
    base()
    return build(
        "lockstep",
        layout.ROOT / "deploy/Containerfile",
        layout.ROOT,
        *("--build-arg", f"PYTHON={BASE}"),
        *_reaching(),
    )


def torch() -> Image:
    """Build the image of jobs that train."""
    return _on_base("torch", HERE)


def mpi() -> Image:
    """Build the image of MPI jobs, with the example's program in it."""
    return _on_base("mpi", layout.ROOT / "examples/mpi")


def kfp() -> Image:
    """Build the image of components of Kubeflow Pipelines."""
    return _on_base("kfp", layout.ROOT / "tools/kfp")


def _on_base(name: str, context: Path) -> Image:
    base()
    file = HERE / f"{name}.Containerfile"
    return build(name, file, context, "--build-arg", f"PYTHON={BASE}", *_reaching())


def kernels() -> Image:
    """Build the image of notebooks' kernels, of Lockstep's that was built last."""
    return build("kernels", HERE / "kernels.Containerfile", HERE, *_reaching())


def base() -> None:
    """Make Debian with Python where it is not in the cache."""
    if BASE in buildah("images", "--format", "{{.Name}}:{{.Tag}}", quiet=True).split():
        return
    print(f"images: {BASE} by debootstrap; about a minute, once", flush=True)
    # In memory, where it is there: dpkg waits for the disk after each file.
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as place:
        root = Path(place) / "root"
        command = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", SUITE, str(root)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for useless in ("var/cache/apt", "var/lib/apt/lists", *_UNREAD):
            shutil.rmtree(root / useless, ignore_errors=True)
        (root / "usr/bin/python").symlink_to("python3")
        (root / "etc/dpkg/dpkg.cfg.d/unsafe-io").write_text("force-unsafe-io\n")
        container = buildah("from", "scratch")
        buildah("add", "-q", container, str(root), "/")
        buildah("commit", "-q", "--rm", container, BASE)


_UNREAD: Final = tuple(f"usr/share/{name}" for name in ("doc", "man", "locale", "info", "lintian"))


def _reaching() -> Iterable[str]:
    """Yield what lets steps reach package servers as this machine does; no layer keeps it."""
    settings = {name[4:].lower(): value for name, value in os.environ.items() if name in _OF_PIP}
    file = layout.cache() / "cluster-images/pip.conf"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{name.replace('_', '-')} = {value}\n" for name, value in settings.items()]
    file.write_text("".join(["[global]\n", *lines]))
    for source, target in ((file, "/etc/pip.conf"), (_TRUSTED, str(_TRUSTED))):
        if source.exists():
            yield from ("--volume", f"{source}:{target}:ro")


def main() -> int:
    """Build the images of Lockstep and of jobs; print their sizes unpacked and how long it took."""
    if os.geteuid() != 0 or not all(map(shutil.which, NEEDED)):
        print(f"images: not built, for want of root or of {' and '.join(NEEDED)}")
        return 0
    for make in (lockstep, torch):
        started = time.monotonic()
        image = make()
        size = buildah("images", "--format", "{{.Size}}", image.tag)
        seconds = time.monotonic() - started
        print(f"images: {image.name} {image.tag}, {size}, in {seconds:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
