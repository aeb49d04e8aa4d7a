"""Nothing is missing among the rights that the manifest gives, and nothing is granted in vain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import kube_binaries
from tests.support.kube_apiserver import MORE_OPTIONS
from tests.support.rights import Right, granted, used

from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.permissions.foreign import FOREIGN, SCALERS

ROOT = Path(__file__).parents[3]
SUITES = (
    "scheduler/test_process.py",
    "scheduler/test_simulated.py",
    "jobs/test_lifecycle.py",
    "jobs/test_reasons.py",
    "jobs/test_dialects.py",
    "jobs/test_dialect_jobs.py",
    "serve/test_controller.py",
    "data/test_controller.py",
    "notebooks/test_controllers.py",
    "tenants",
    "nodes_simulated",
    "pools",
    "deploy/test_parts.py",
    "health/test_thin_path.py",
    "pipelines/test_controller.py",
    "console/test_rights.py",
    "deploy/test_console.py",
)
"""Tests that make the parts do all that they do; with the others they have the same accounts."""
PARTS = ("scheduler", "controllers", "console", "simulate-nodes")
"""Parts that those tests run with their own accounts; a real cluster proves the others."""
REPEATED = (
    "embedded",
    "killed_again_and_again",
    "completes_the_gang_after_a_restart",
    "told_the_aligned_devices",
)
"""Words of the names of those among them that need no right beyond the others', and long."""
ROLES = ("admin", "edit", "view")
UNSEEN = {
    "console": {
        # A browser that looks at a job's ranks has them read.
        *(Right("coordination.k8s.io", "leases", verb) for verb in ("list", "watch")),
        # Kinds of others, which are not installed there: the watch tells that first.
        Right("data.fluid.io", "datasets", "list"),
        Right("kubeflow.org", "notebooks", "list"),
        Right("serving.kserve.io", "inferenceservices", "list"),
    },
    # No request: a part that names an owner that is not to go first must be able to change it.
    "controllers": {
        Right("lockstep.dev", "trainingjobs/finalizers", "update"),
        Right("lockstep.dev", "teams/finalizers", "update"),
        Right("data.fluid.io", "datasets/finalizers", "update"),
        # No request: a role binding's author must have the role's rights, or this one.
        *(Right("rbac.authorization.k8s.io", "clusterroles", "bind", "", name) for name in ROLES),
        # Only where a job's max grows, and where the answer to a creation was lost.
        Right("lockstep.dev", "trainingjobs", "get"),
        Right("rbac.authorization.k8s.io", "roles", "patch"),
        Right("rbac.authorization.k8s.io", "roles", "get"),
        Right("rbac.authorization.k8s.io", "rolebindings", "get"),
        # The same code serves all kinds; not each of them is made, deleted and out of time there.
        *(
            Right(group, resource, verb)
            for group, plurals in (*FOREIGN.items(), *SCALERS.items())
            for plural in plurals.split()
            for resource, verb in (
                (plural, "delete"),
                (plural, "get"),
                (f"{plural}/status", "patch"),
            )
        ),
        # Whose a kind is is asked only where an object of it is there.
        *(
            Right(
                "apiextensions.k8s.io", "customresourcedefinitions", "get", "", f"{plural}.{group}"
            )
            for group, plurals in (*FOREIGN.items(), *SCALERS.items())
            for plural in plurals.split()
        ),
        # Only where rails state pools.
        Right("lockstep.dev", "topologies", "patch"),
        # Only where the answer to a creation was lost.
        Right("lockstep.dev", "queues", "get"),
        # No request: a role can only hand on what its maker may do.
        Right("lockstep.dev", "teams", "get"),
        # Only where a team's last member goes.
        Right("rbac.authorization.k8s.io", "clusterroles", "delete"),
        Right("rbac.authorization.k8s.io", "clusterrolebindings", "delete"),
        # Made of other systems' kernels, which no test there creates or changes.
        *(Right("lockstep.dev", "kernels", verb) for verb in ("create", "get", "patch")),
        *(Right("lockstep.dev", "environments", verb) for verb in ("get", "patch")),
        Right("kubeflow.org", "notebooks", "get"),
        # Only where there are pools and Volcano's kind at once; the scheduler, which reads it too,
        # is seen to do so.
        Right("topology.volcano.sh", "hypernodes", "list"),
        Right("topology.volcano.sh", "hypernodes", "watch"),
        # Only where kube-controller-manager, which binds volumes too, has not been faster.
        Right("", "persistentvolumes/status", "patch"),
        Right("", "persistentvolumeclaims/status", "patch"),
    },
}
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


def options(log: Path, policy: Path) -> str:
    """Return options that log every request; older servers, too, make informers list."""
    return " ".join(
        (
            f"--audit-log-path={log}/{{port}}.log",
            f"--audit-policy-file={policy}",
            "--feature-gates=WatchList=false",
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        )
    )


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_each_part_may_do_what_it_does_and_no_more(tmp_path: Path) -> None:
    kube_binaries.need("kube-apiserver")
    logs, policy = tmp_path / "logs", tmp_path / "policy.json"
    logs.mkdir()
    policy.write_text(json.dumps(POLICY))
    command = [sys.executable, "-m", "pytest", "-n2", "--dist", "loadgroup"]
    chosen = " and ".join(f"not {words}" for words in REPEATED)
    command += ["-p", "no:cacheprovider", "-k", chosen, f"--basetemp={tmp_path / 'run'}"]
    done = subprocess.run(
        [*command, *(f"tests/integration/{suite}" for suite in SUITES)],
        cwd=ROOT,
        env={**os.environ, MORE_OPTIONS: options(logs, policy)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    lines = [line for log in logs.glob("*.log") for line in log.read_text().splitlines()]
    wrong: dict[str, list[Right]] = {}
    for part in PARTS:
        user = f"system:serviceaccount:{SYSTEM_NAMESPACE}:lockstep-{part}"
        got, refused = used(lines, user)
        assert got, f"{part} asked for nothing: was it its account that was used?"
        unseen = UNSEEN.get(part, set())
        vain = [
            right
            for right in sorted(granted(part, SYSTEM_NAMESPACE) - unseen)
            if not any(right.covers(use) for use in got)
        ]
        wrong |= {f"{part} lacks": sorted(refused), f"{part} needs no": vain}
    found = [f"{what} {right}" for what, rights in wrong.items() for right in rights]
    assert not found, "\n".join(found)
