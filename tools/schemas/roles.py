"""Record the roles and bindings that a cluster starts with, as kube-apiserver makes them.

Run it as ``python tools/schemas/roles.py`` after raising the version in ``tools/kube``; it needs
what ``make kube`` builds. It writes to ``src/lockstep/apiserver/data/``, the same bytes for the
same version.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.support.kube_apiserver import KubeApiServer  # noqa: E402 - found next to the tests, which use it too

DATA = ROOT / "src" / "lockstep" / "apiserver" / "data"
GROUP = "rbac.authorization.k8s.io"
PLURALS = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
BOOTSTRAP = "labelSelector=kubernetes.io/bootstrapping=rbac-defaults"
KEPT = ("name", "namespace", "labels", "annotations")


class BareApiServer(KubeApiServer):
    """A kube-apiserver that nobody has touched."""

    def _furnish(self) -> None:
        """Leave it as it is."""


def main() -> int:
    """Start kube-apiserver, ask, write, and say how many there are."""
    with tempfile.TemporaryDirectory() as place:
        server = BareApiServer(Path(place) / "cluster")
        try:
            server.start()
            found = {plural: bootstrap_objects(server, plural) for plural in PLURALS}
        finally:
            server.kill()
    packed = gzip.compress(json.dumps(found, separators=(",", ":")).encode(), mtime=0)
    (DATA / "roles.json.gz").write_bytes(packed)
    print(f"roles.json.gz: {sum(map(len, found.values()))} objects, {len(packed)} bytes")
    return 0


def bootstrap_objects(server: KubeApiServer, plural: str) -> list[Json]:
    """Return what the server has made of one resource, without what differs from run to run."""
    listing = server.request("GET", f"/apis/{GROUP}/v1/{plural}?{BOOTSTRAP}").json
    kind = listing["kind"].removesuffix("List")
    return [
        {"apiVersion": f"{GROUP}/v1", "kind": kind, **reduced(item)}
        for item in sorted(listing["items"], key=lambda one: str(one["metadata"]["name"]))
    ]


def reduced(item: Json) -> Json:
    """Return an object without its origin and without rules gathered from other roles."""
    kept = {name: item["metadata"][name] for name in KEPT if name in item["metadata"]}
    rules = {"rules": []} if "aggregationRule" in item else {}
    return {**item, "metadata": kept, **rules}


if __name__ == "__main__":
    sys.exit(main())
