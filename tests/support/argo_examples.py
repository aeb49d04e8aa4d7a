"""Argo's own examples: where they are, what each needs, and how they run on a control plane."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

Json = dict[str, Any]

VARIABLE: Final = "ARGO_EXAMPLES"
"""Names the directory ``examples`` of a copy of github.com/argoproj/argo-workflows."""
_CLOUDS: Final = frozenset(
    {"artifactory", "azure", "gcs", "git", "hdfs", "http", "oss", "plugin", "executorPlugins"}
)
"""Fields that reach other hosts or stores of a cloud."""
APART: Final = {
    "artifact-disable-archive": "keeps all of /etc, which is this machine's own",
    "influxdb-ci": "clones from the internet",
    "fun-with-gifs": "loads pictures from the internet",
    "exit-handler-slack": "posts to Slack",
    "sidecar": "installs packages from the internet",
    "sidecar-dind": "needs a Docker daemon",
    "hello-windows": "needs Windows",
    "hello-hybrid": "needs Windows",
    "forever": "never ends",
    "resource-claims": "needs a driver of devices",
    "resource-claims-template-override": "needs a driver of devices",
    "suspend-template-outputs": "a person gives it a value",
    "intermediate-parameters": "a person gives it a value",
    "input-artifact-s3": "reads what is in a bucket of somebody's",
    "workflow-count-resourcequota": "is about a quota of another cluster",
    "image-pull-secrets": "pulls from a private registry",
    "k8s-resource-log-selector": "its image is a placeholder",
    "daemoned-stateful-set-with-service": "needs a controller of stateful sets",
    "resource-flags": "needs OpenShift's routes",
    "cron-backfill": "needs kubectl's images",
    "k8s-orchestration": "needs kubectl's images",
}
"""Examples that need what a machine without a network, or a plain cluster, has not."""
MEANT_TO_FAIL: Final = frozenset(
    {
        "continue-on-fail",
        "custom-metrics",
        "dag-continue-on-fail",
        "dag-disable-failfast",
        "dag-task-level-timeout",
        "exit-code-output-variable",
        "exit-handlers",
        "loops-arbitrary-sequential-steps",
        "pod-gc-strategy",
        "pod-gc-strategy-with-label-selector",
        "retry-backoff",
        "retry-conditional",
        "retry-container",
        "retry-on-error",
        "retry-script",
        "resubmit",
        "step-level-timeout",
        "template-defaults",
        "timeouts-step",
        "timeouts-workflow",
    }
)
"""Examples whose programs end badly by design or by chance: any end that is theirs is one."""
_PROGRAMS: Final = (
    *("alpine*", "busybox*", "debian*", "ubuntu*", "curlimages/curl*", "nginx*", "golang*"),
    *("node:*", "stedolan/jq*", "argoproj/argosay*", "docker/whalesay*", "python*"),
)
_ARGOSAY: Final = r"""#!/bin/sh
# A stand-in for argoproj/argosay: what its examples ask of it.
[ $# = 0 ] && set -- echo "hello argo"
verb=$1; shift
case $verb in
  echo) if [ -n "$2" ]; then mkdir -p "$(dirname "$2")"; printf %s "$1" > "$2"; else
        echo "${1:-hello argo}"; fi ;;
  cat) cat "$@" ;;
  exit) exit "${1:-0}" ;;
  sleep) sleep "$1" ;;
  *) echo "argosay: no $verb" >&2; exit 64 ;;
esac
"""
_NGINX: Final = r"""#!/bin/sh
# This machine's nginx on the pod's own address: port 80 of all of them is the machine's.
own=$(mktemp -d)
address=$(sed -n 4p /etc/hosts | cut -f 1)
cat > "$own/nginx.conf" <<END
pid $own/pid; error_log stderr;
events {}
http { access_log off; server { listen $address:80; location / { return 200 "welcome\n"; } } }
END
exec /usr/sbin/nginx -c "$own/nginx.conf" "$@"
"""
_COWSAY: Final = '#!/bin/sh\n# A stand-in for cowsay.\necho "< $* >"\n'


@dataclass(frozen=True)
class Example:
    """One workflow of the examples."""

    name: str
    tree: Json

    def cloud(self) -> str:
        """Return what it needs of others than this machine; empty where nothing."""
        if self.name in APART:
            return APART[self.name]
        for field in _fields(self.tree["spec"]):
            if field in _CLOUDS:
                return f"reaches out by {field}"
        unknown = [image for image in _images(self.tree["spec"]) if not _have(image)]
        return f"its image cannot be had: {unknown[0]}" if unknown else ""


def directory() -> Path | None:
    """Return where the examples are; none where there are none."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given and Path(given).is_dir() else None


@cache
def documents(root: Path) -> list[tuple[str, Json]]:
    """Return every object of the examples beside the name of its file."""
    found = []
    for file in sorted(root.rglob("*.yaml")):
        for number, tree in enumerate(yaml.safe_load_all(file.read_text())):
            if isinstance(tree, dict) and tree.get("kind"):
                name = re.sub(r"[^a-z0-9]+", "-", str(file.relative_to(root))[:-5].lower())
                found.append((name[-50:].lstrip("-") + (f"-{number}" if number else ""), tree))
    return found


def examples(root: Path) -> list[Example]:
    """Return the workflows among the examples."""
    return [Example(n, tree) for n, tree in documents(root) if tree["kind"] == "Workflow"]


def surroundings(root: Path) -> list[Json]:
    """Return what examples refer to: templates, ConfigMaps, a Secret."""
    kinds = ("WorkflowTemplate", "ClusterWorkflowTemplate", "ConfigMap")
    found: dict[tuple[str, str], Json] = {
        ("ConfigMap", "my-config"): {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "my-config"},
            "data": {"workflow": "1", "template": "2"},
        },
        ("Secret", "my-secret"): {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "my-secret"},
            "stringData": {"mypassword": "S00perS3cretPa55word"},
        },
    }
    for _, tree in documents(root):
        if tree["kind"] in kinds:
            found.setdefault((tree["kind"], tree["metadata"]["name"]), tree)
    return [*found.values()]


def volume(place: Path) -> list[Json]:
    """Return the volume and the claim that one example finds there, in a directory of *place*."""
    name, modes = "my-existing-volume", ["ReadWriteOnce"]
    (place / name).mkdir()
    size = {"storage": "1Gi"}
    bound = {"namespace": "default", "name": name}
    lies = {"hostPath": {"path": str(place / name)}, "claimRef": bound, "capacity": size}
    asks = {"volumeName": name, "storageClassName": "", "resources": {"requests": size}}
    plain = {"apiVersion": "v1", "metadata": {"name": name}}
    return [
        {**plain, "kind": "PersistentVolume", "spec": {"accessModes": modes, **lies}},
        {**plain, "kind": "PersistentVolumeClaim", "spec": {"accessModes": modes, **asks}},
    ]


def table(place: Path) -> Path:
    """Write a table by which the examples' images stand for programs of this machine."""
    programs = place / "programs"
    programs.mkdir(parents=True)
    for name, text in (("argosay", _ARGOSAY), ("cowsay", _COWSAY), ("nginx", _NGINX)):
        programs.joinpath(name).write_text(text)
        programs.joinpath(name).chmod(0o755)
    busybox = shutil.which("busybox")
    small = place / "busybox"
    small.mkdir()
    for applet in ("sh", "ash", "echo", "cat", "sleep", "seq", "head", "wc", "tee", "find", "date"):
        if busybox:
            small.joinpath(applet).symlink_to(busybox)
    usual = "/usr/local/bin:/usr/bin:/usr/sbin:/bin"
    paths = {"python": f"{Path(sys.executable).parent}:{usual}"}
    entries = []
    for pattern in _PROGRAMS:
        kind = pattern.rstrip("*:")
        path = paths.get(kind, f"{programs}:{small}:{usual}")
        command = {"nginx": ["nginx", "-g", "daemon off;"], "python": ["python3"]}
        entry: Json = {
            "image": pattern,
            "command": command.get(kind, ["sh"]),
            "env": {"PATH": path},
        }
        if "say" in kind:
            entry |= {"command": ["/argosay"], "mounts": {"/argosay": str(programs / "argosay")}}
        entries.append(entry)
    file = place / "images.yaml"
    file.write_text(yaml.safe_dump(entries))
    return file


def prepared(example: Example, annotations: dict[str, str]) -> Json:
    """Return the workflow of an example under a name of its own, with the store's annotations."""
    meta = {key: value for key, value in example.tree["metadata"].items() if key != "generateName"}
    noted = {**(meta.get("annotations") or {}), **annotations}
    named = {**meta, "name": example.name, "namespace": "default", "annotations": noted}
    return {**example.tree, "metadata": named}


def outcome(example: Example, status: Json) -> str:
    """Return empty where a workflow that is over came to its outputs; else why not."""
    if status.get("phase") == "Succeeded":
        return ""
    if status.get("phase") == "Failed" and example.name in MEANT_TO_FAIL:
        return ""
    return f"{status.get('phase') or 'never started'}: {status.get('message', '')}"[:300]


def play(
    wanted: list[Example],
    submit: Callable[[list[Example]], None],
    statuses: Callable[[], dict[str, Json]],
    resume: Callable[[str], None],
    *,
    at_once: int = 20,
    seconds: float = 420.0,
) -> dict[str, str]:
    """Run examples, several at once; return for each why it came to no outputs, or nothing."""
    left, running = [*wanted], dict[str, tuple[Example, float]]()
    ends: dict[str, str] = {}
    while left or running:
        more, left = left[: at_once - len(running)], left[at_once - len(running) :]
        if more:
            submit(more)
            running |= {one.name: (one, time.monotonic() + seconds) for one in more}
        known = statuses()
        for name, (one, until) in [*running.items()]:
            found = known.get(name, {})
            if found.get("phase") in ("Succeeded", "Failed", "Error"):
                ends[name] = outcome(one, found)
                del running[name]
            elif time.monotonic() > until:
                ends[name] = f"not over after {seconds:g} s: {_waits(found)}"
                del running[name]
            elif any(_for_a_person(node) for node in (found.get("nodes") or {}).values()):
                resume(name)
        time.sleep(0.3)
    return ends


def _for_a_person(node: Json) -> bool:
    return (
        node.get("type") == "Suspend"
        and "resumed" in str(node.get("message", ""))
        and (node.get("phase") == "Running")
    )


def _waits(status: Json) -> str:
    nodes = (status.get("nodes") or {}).values()
    return "; ".join(
        f"{node['displayName']}: {node.get('message', node['phase'])}"
        for node in nodes
        if node.get("phase") in ("Pending", "Running")
    )[:300]


def _fields(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield key
            yield from _fields(value)
    elif isinstance(tree, list):
        for one in tree:
            yield from _fields(one)


def _images(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key == "image" and isinstance(value, str):
                yield value.strip()
            else:
                yield from _images(value)
    elif isinstance(tree, list):
        for one in tree:
            yield from _images(one)


def _have(image: str) -> bool:
    from fnmatch import fnmatchcase

    return "{{" in image or any(fnmatchcase(image, pattern) for pattern in _PROGRAMS)


def reasons(ends: dict[str, str]) -> str:
    """Return as JSON, for people, why examples came to no outputs."""
    return json.dumps({name: why for name, why in ends.items() if why}, indent=1)
