"""Write what deploy/ and its page hold of the program: CRDs, permissions, and the manifest.

The manifest is the chart as Helm renders it with its own values, into one namespace.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml
from tools.helm import build

from lockstep.api import crd, creator_policy, queue_policy, team_borders, team_images
from lockstep.api.dataset_cache import DRIVER
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.permissions.parts import PERMISSIONS
from lockstep.api.permissions.people import PEOPLE, STANDING
from lockstep.api.permissions.rules import METRICS, OWN
from lockstep.api.queue import QUEUES
from lockstep.cli.manifests import alarm_groups
from lockstep.devices.admission.objects import configuration
from lockstep.insight.board import board

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "deploy" / "chart" / "lockstep"
MANIFEST: Final = ROOT / "deploy" / "lockstep.yaml"
PAGE: Final = ROOT / "docs" / "install-cluster.md"
IN_CHART: Final = (
    "scheduler",
    "controllers",
    "agent",
    "data-cache",
    "router",
    "recorder",
    "console",
    "gateway",
    "admission",
    "simulate-nodes",
)
"""Process nodes run on machines without Kubernetes and are no part of it."""
_BEGIN: Final = "<!-- permissions: written by `make manifests` -->"
_END: Final = "<!-- end of permissions -->"
_HEAD: Final = (
    "# Lockstep on a cluster: kubectl apply --server-side -f lockstep.yaml\n"
    "# Rendered from chart/lockstep by `make manifests`.\n"
)


def _csi_driver() -> dict[str, Any]:
    """Return the CSIDriver that tells kubelets how volumes of datasets are mounted."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": DRIVER, "labels": {"app.kubernetes.io/part-of": "lockstep"}},
        "spec": {
            "attachRequired": False,
            # A volume written into a pod shows datasets of the pod's own namespace.
            "podInfoOnMount": True,
            "fsGroupPolicy": "None",
            "volumeLifecycleModes": ["Persistent", "Ephemeral"],
        },
    }


def generated() -> dict[Path, str]:
    """Return the chart's files that follow from the program."""
    components = {
        name: {
            "serves": PERMISSIONS[name].serves,
            "onNodes": PERMISSIONS[name].on_nodes,
            "cluster": list(PERMISSIONS[name].cluster),
            "namespaced": {k: list(v) for k, v in PERMISSIONS[name].namespaced.items()},
        }
        for name in IN_CHART
    }
    people = {name: list(rules) for name, rules in PEOPLE.items()}
    table = {
        "components": components,
        "metrics": list(METRICS),
        "people": people,
        "standing": list(STANDING),
    }
    permissions = "# Written by `make manifests` from lockstep.api.permissions.\n" + _dump(table)
    files = CHART / "files"
    return {
        files / "crds.yaml": crd.to_yaml(),
        files / "permissions.yaml": permissions,
        files / "shares.yaml": yaml.safe_dump(configuration(), sort_keys=False, width=100),
        files / "creator.yaml": yaml.safe_dump_all(creator_policy.objects(), sort_keys=False),
        files / "csidriver.yaml": yaml.safe_dump(_csi_driver(), sort_keys=False),
        files / "alarms.yaml": yaml.safe_dump(alarm_groups(), sort_keys=False, width=100),
        files / "dashboard.json": json.dumps(board(), indent=1) + "\n",
        files / "default-queue.yaml": yaml.safe_dump_all(
            queue_policy.default_objects(), sort_keys=False
        ),
        files / "queue-use.yaml": yaml.safe_dump_all(queue_policy.objects(), sort_keys=False),
        files / "team-borders.yaml": yaml.safe_dump_all(team_borders.objects(), sort_keys=False),
        files / "team-images.yaml": yaml.safe_dump_all(team_images.objects(), sort_keys=False),
        PAGE: _page(PAGE.read_text()),
    }


def _page(text: str) -> str:
    """Return the documentation's page with the table of permissions as it is now."""
    before, rest = text.split(_BEGIN)
    _, after = rest.split(_END)
    lines = ["| part | where | what | may |", "| --- | --- | --- | --- |"]
    for part in IN_CHART:
        may = PERMISSIONS[part]
        for where, rules in (("everywhere", may.cluster), *may.namespaced.items()):
            lines += [_row(part, may.home if where == OWN else where, rule) for rule in rules]
        if may.serves:
            lines += [_row(part, "everywhere, to serve metrics", rule) for rule in METRICS]
    return "\n".join((before + _BEGIN, *lines, _END + after))


def _row(part: str, where: str, rule: dict[str, Any]) -> str:
    what = ", ".join(f"`{one}`" for one in rule["resources"])
    names = ", ".join(rule.get("resourceNames", ()))
    group = rule["apiGroups"][0]
    whose = f" of {group}" if group else ""
    return (
        f"| {part} | {where} | {what}{whose} {names}".rstrip() + f" | {', '.join(rule['verbs'])} |"
    )


def render(helm: Path, *values: str) -> str:
    """Return what Helm makes of the chart with *values*, such as ``metrics.enabled=false``.

    Raises:
        subprocess.CalledProcessError: when Helm refuses the chart or a value.
    """
    command = [str(helm), "template", "lockstep", str(CHART), "--namespace", SYSTEM_NAMESPACE]
    for value in values:
        command += ["--set", value]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def manifest(helm: Path) -> str:
    """Return the plain manifest, its objects in the order in which they can be applied.

    The default queue is left out: one file cannot hold a kind and an object of it.
    """
    objects = yaml.safe_load_all(render(helm, "namespace.create=true"))
    applied = (one for one in objects if one and one["kind"] != QUEUES.kind)
    return _HEAD + yaml.safe_dump_all(in_order(applied), sort_keys=False, width=100)


_ORDER: Final = ("Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole")


def in_order(objects: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return objects so that what others need comes first."""
    known = {kind: place for place, kind in enumerate(_ORDER)}
    return sorted(objects, key=lambda one: known.get(one["kind"], len(known)))


def _dump(value: object) -> str:
    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    return yaml.dump(value, Dumper=Plain, sort_keys=False, width=100)


def main() -> int:
    """Write all files and return the exit status."""
    for path, text in generated().items():
        path.write_text(text)
    helm = build.find()
    if helm is None:
        print("manifests: deploy/lockstep.yaml is rendered by Helm: run `make helm` first")
        return 1
    MANIFEST.write_text(manifest(helm))
    return 0


if __name__ == "__main__":
    sys.exit(main())
