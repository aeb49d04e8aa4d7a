"""Record what Kubernetes' own code makes of random patches, for the tests to compare with.

Usage: go build -o patches . && python generate.py ./patches api__v1_openapi.json > patches.jsonl

The document is that of the core group in Kubernetes' ``api/openapi-spec/v3``. Empty lists are left
out: the reference forgets one that is applied in the place of a full one, and we keep it.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

from lockstep.apiserver.patch import PatchError, Writer, apply, builtin, track

Json = dict[str, Any]

HISTORIES, MERGES, SEED = 150, 250, 20261121
IDENTITY = {"name": "p", "namespace": "x"}


class Random:
    """Random pods and patches of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311

    def maybe(self, chance: float) -> bool:
        """Whether a chance comes true."""
        return self.random.random() < chance

    def one(self, choices: Any) -> Any:
        """Return one of the choices."""
        return self.random.choice(choices)

    def some(self, choices: Any, low: int = 1) -> list[Any]:
        """Return some of the choices in any order, *low* at least."""
        return self.random.sample(list(choices), self.random.randint(low, len(choices)))

    def container(self, name: str) -> Json:
        """Return a container."""
        container: Json = {"name": name}
        if self.maybe(0.7):
            container["image"] = self.one("123")
        if self.maybe(0.4):
            container["args"] = [self.one("xy") for _ in range(self.random.randint(1, 2))]
        if self.maybe(0.5):
            container["ports"] = [self.port(number) for number in self.some([80, 81])]
        if self.maybe(0.4):
            container["env"] = [{"name": n, "value": self.one("12")} for n in self.some("EFG")]
        if self.maybe(0.3):
            container["resources"] = self.one([{}, {"limits": {"cpu": "1"}}])
        return container

    def port(self, number: int) -> Json:
        """Return a port, with or without the default of its key."""
        port: Json = {"containerPort": number}
        if self.maybe(0.5):
            port["protocol"] = self.one(["TCP", "UDP"])
        if self.maybe(0.4):
            port["name"] = self.one("pq")
        return port

    def pod(self) -> Json:
        """Return a pod, or the part of one that somebody cares about."""
        metadata: Json = dict(IDENTITY)
        if self.maybe(0.6):
            metadata["labels"] = {key: self.one("12") for key in self.some("klm", 0)}
        if self.maybe(0.4):
            metadata["finalizers"] = self.some(["f/a", "f/b", "f/c"])
        spec: Json = {}
        if self.maybe(0.8):
            spec["containers"] = [self.container(name) for name in self.some("abc")]
        if self.maybe(0.4):
            spec["nodeSelector"] = {key: self.one("12") for key in self.some("uv", 0)}
        if self.maybe(0.3):
            spec["hostname"] = self.one("hi")
        if self.maybe(0.3):
            spec["tolerations"] = [{"key": self.one("kz")}]
        if self.maybe(0.2):
            spec["securityContext"] = self.one([{}, {"runAsUser": 1}])
        pod: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        return {**pod, "spec": spec} if self.maybe(0.9) else pod

    def edited(self, live: Json) -> Json:
        """Return a live pod as somebody edits it."""
        edited: Json = json.loads(json.dumps(live))
        edited["metadata"].pop("managedFields", None)
        other = self.pod()
        for part in ("metadata", "spec"):
            members = edited.setdefault(part, {})
            for key in [key for key in members if key not in IDENTITY and self.maybe(0.2)]:
                del members[key]
            members |= {key: v for key, v in other.get(part, {}).items() if self.maybe(0.5)}
        return edited

    def patch(self) -> Json:
        """Return a strategic merge patch with all kinds of directives."""
        patch = self.pod()
        spec = patch.setdefault("spec", {})
        for container in spec.get("containers", ()):
            if self.maybe(0.2):
                container["$patch"] = "delete"
            if self.maybe(0.2):
                container["image"] = None
        if "containers" in spec and self.maybe(0.3):
            names = [c["name"] for c in spec["containers"]]
            names += [name for name in self.some("abc") if name not in names]
            spec["$setElementOrder/containers"] = [{"name": name} for name in names]
        # With both, what the reference answers depends on the order of its maps.
        if "finalizers" not in patch["metadata"] and self.maybe(0.5):
            patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = self.some(["f/a", "f/b"])
        if "nodeSelector" in spec and self.maybe(0.3):
            spec["nodeSelector"]["$patch"] = self.one(["replace", "delete"])
        if self.maybe(0.2):
            patch["metadata"]["labels"] = self.one([None, {"k": None, "m": "3"}])
        if self.maybe(0.2):
            spec["$retainKeys"] = [key for key in spec if not key.startswith("$")]
        return patch

    def history(self) -> list[Json]:
        """Return some applies and updates of one pod."""
        steps: list[Json] = []
        live: Json | None = None
        for _ in range(self.random.randint(1, 6)):
            is_update = live is not None and self.maybe(0.35)
            obj = self.edited(live) if live is not None and is_update else self.pod()
            step = {
                "Op": "update" if is_update else "apply",
                "Manager": self.one(["one", "two", "three"]),
                "Force": self.maybe(0.4),
                "Object": obj,
            }
            steps.append(step)
            live = played(live, step)
        return steps


def played(live: Json | None, step: Json) -> Json | None:
    """Return the object after a step, as far as we can tell, to have something to edit."""
    kind, by = builtin("io.k8s.api.core.v1.Pod"), Writer(step["Manager"], "v1", 1e9)
    if step["Op"] == "update":
        new: Json = json.loads(json.dumps(step["Object"]))
        track(live, new, kind, by)
        return new
    try:
        return apply(live, step["Object"], kind, by, force=step["Force"])
    except PatchError:
        return live


def main(reference: str, document: str) -> None:
    """Print each question with the reference's answer, a line each."""
    source = Random(SEED)
    questions: list[Any] = [source.history() for _ in range(HISTORIES)]
    questions += [{"Original": source.pod(), "Patch": source.patch()} for _ in range(MERGES)]
    lines = "\n".join(json.dumps(question) for question in questions)
    answers = subprocess.run(
        [reference, document], input=lines, capture_output=True, text=True, check=True
    )
    for question, answer in zip(questions, answers.stdout.splitlines(), strict=True):
        record = {"question": question, "answer": json.loads(answer)}
        sys.stdout.write(json.dumps(record, separators=(",", ":"), sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
