"""What stories on a real cluster do: namespaces, objects, pods, and nodes that come back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.waiting import eventually_sync
from tools.cluster import control
from tools.cluster.cluster import Cluster

from lockstep.api.names import NODES_NAMESPACE, SYSTEM_NAMESPACE

Json = dict[str, Any]


@dataclass
class OnCluster:
    """A cluster as one story sees it."""

    cluster: Cluster
    space: str = "default"
    idle_image: str = ""
    """An image that does nothing, until it is ended."""
    kubeconfig: Path | None = None
    """Of a user other than the administrator."""

    def of(self, user: str, space: str, path: Path, *groups: str) -> OnCluster:
        """Return the cluster as another user with a certificate of its own sees it."""
        control.person(self.cluster.record, user, groups, path)
        return replace(self, space=space, kubeconfig=path)

    @contextmanager
    def namespace(self) -> Iterator[None]:
        """Give the story a namespace of its own while the block runs."""
        before = self.space
        made = json.loads(self.kubectl("create", "-o", "json", "-f", "-", stdin=_NAMESPACE))
        self.space = made["metadata"]["name"]
        try:
            yield
        finally:
            self.cluster.kubectl(
                "delete", "namespace", self.space, "--wait=false", "--ignore-not-found"
            )
            self.space = before

    def heal(self) -> None:
        """Let every node that was stopped run again, and wait until all are Ready.

        For the API server a node that was away for less than its grace has been Ready all along:
        its kubelet has to say so anew, and our own pods on it have to have been started again.
        """
        began = datetime.now(UTC).replace(microsecond=0)
        stopped = [n.name for n in self.cluster.record.all_nodes if not self.cluster.runs(n.name)]
        for name in stopped:
            self.cluster.start_node(name)
        eventually_sync(self.cluster.ready, 90, "every node is Ready again")
        for name in stopped:
            eventually_sync(lambda n=name: self._is_back(n, began), 180, f"{name} runs its pods")

    def _is_back(self, node: str, began: datetime) -> bool:
        words = ("-n", NODES_NAMESPACE, "get", "pods", "--field-selector", f"spec.nodeName={node}")
        pods = json.loads(self.cluster.kubectl(*words, "-o", "json"))["items"]
        states = [
            one.get("state", {}).get("running", {}).get("startedAt", "")
            for pod in pods
            for one in pod["status"].get("containerStatuses", ())
        ]
        started = [bool(at) and datetime.fromisoformat(at) >= began for at in states]
        return all(started)

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        """Run kubectl in the story's namespace."""
        own = [f"--kubeconfig={self.kubeconfig}"] if self.kubeconfig else []
        return self.cluster.kubectl("-n", self.space, *own, *words, stdin=stdin)

    def apply(self, *objects: Json) -> None:
        """Apply objects in the story's namespace."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self.kubectl("apply", "--server-side", "-f", "-", stdin=text)

    def get(self, kind: str, name: str) -> Json:
        """Return an object; empty where there is none."""
        found = self.kubectl("get", kind, name, "--ignore-not-found", "-o", "json")
        return dict(json.loads(found)) if found else {}

    def pods(self, selector: str = "") -> list[Json]:
        """Return the pods that a label selector names, ordered by name."""
        words = ["get", "pods", "-o", "json", *(["-l", selector] if selector else [])]
        return sorted(
            json.loads(self.kubectl(*words))["items"], key=lambda p: p["metadata"]["name"]
        )

    def own_image(self) -> str:
        """Return the image that Lockstep runs from here; it has Python."""
        shown = ("-o", "jsonpath={.spec.template.spec.containers[0].image}")
        words = ("-n", "lockstep-system", "get", "deployment", "lockstep-scheduler")
        return self.cluster.kubectl(*words, *shown).strip()

    def logs(self, pod: str, *words: str) -> str:
        """Return what a pod printed so far; empty while it cannot be read."""
        return self.cluster.kubectl("-n", self.space, "logs", pod, *words, check=False)

    def lockstep_image(self) -> str:
        """Return the image that Lockstep's own parts run."""
        path = "jsonpath={.spec.template.spec.containers[0].image}"
        names = ("-n", SYSTEM_NAMESPACE, "get", "deployment", "lockstep-controllers", "-o", path)
        return self.cluster.kubectl(*names)

    def lockstep(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the command line as a user with a kubeconfig does."""
        return subprocess.run(
            self._command(words), capture_output=True, text=True, check=False, timeout=120
        )

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run a command of the command line while the block runs."""
        with subprocess.Popen(self._command(words), stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def _command(self, words: Sequence[str]) -> list[str]:
        own = self.kubeconfig or self.cluster.kubeconfig
        options = ["--kubeconfig", str(own)]
        if words[0] not in _WITHOUT_NAMESPACE:
            options += ["--namespace", self.space]
        at = words.index("--") if "--" in words else len(words)
        return [sys.executable, "-m", "lockstep", *words[:at], *options, *words[at:]]

    def wait(self, probe: Callable[[], Any], seconds: float, what: str) -> Any:
        """Wait for a condition; a failure shows the pods."""
        try:
            return eventually_sync(probe, seconds, what)
        except AssertionError as error:
            shown = self.cluster.kubectl("-n", self.space, "get", "pods", "-o", "wide", check=False)
            raise AssertionError(f"{error}\n{shown}") from None


_WITHOUT_NAMESPACE = ("cluster", "doctor", "pool")
"""Commands that look at the whole cluster."""
_NAMESPACE = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "story-"}}'
