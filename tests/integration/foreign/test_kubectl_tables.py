"""Every kind of a dialect is read as people read it: in tables, wide tables and descriptions."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.support.kubectl import KUBECTLS, Kubectl

from lockstep.compat.dialects import DIALECTS, manifests

Json = dict[str, Any]
STATUS: Json = {
    "conditions": [{"type": "Created", "status": "True"}, {"type": "Running", "status": "True"}]
}
UNREADABLE: Json = {
    "name": "Odd",
    "type": "string",
    "priority": 1,
    "jsonPath": ".status.conditions[?(@.status>1)].type",
}


def crds() -> list[Json]:
    """Return the CRDs of all dialects, each with one more column that cannot be read."""
    found = manifests(DIALECTS)
    for crd in found:
        for version in crd["spec"]["versions"]:
            version["additionalPrinterColumns"] = [*version["additionalPrinterColumns"], UNREADABLE]
    return found


def objects(found: list[Json]) -> list[Json]:
    """Return one object of each kind."""
    return [
        {
            "apiVersion": f"{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}",
            "kind": crd["spec"]["names"]["kind"],
            "metadata": {"name": "one"},
            "spec": {},
        }
        for crd in found
    ]


@pytest.mark.parametrize("program", KUBECTLS[:1], indirect=True)
def test_every_kind_is_listed_wide_and_described(kubectl: Kubectl) -> None:
    found = crds()
    kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(found))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    mine = yaml.safe_dump_all(objects(found))
    kubectl("create", "-f", "-", stdin=mine)
    kubectl(
        "patch",
        "-f",
        "-",
        "--subresource=status",
        "--type=merge",
        "-p",
        yaml.safe_dump({"status": STATUS}),
        stdin=mine,
    )
    names = ",".join(crd["metadata"]["name"] for crd in found)
    lines = [line for line in kubectl("get", names).splitlines() if "/one" in line]
    assert len(lines) == len(found)
    (job,) = [line for line in lines if line.startswith("pytorchjob.kubeflow.org/one")]
    assert job.split()[1] == "Running"
    wide = kubectl("get", names, "-o", "wide")
    assert (wide.count("/one"), wide.count("ODD")) == (len(found), len(found))
    told = kubectl("describe", names)
    assert told.count("Name:         one") == len(found)
