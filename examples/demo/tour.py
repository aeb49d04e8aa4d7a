"""What else the control plane does: each stop of the tour shows one capability and proves it."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import yaml
from control_plane import ControlPlane, output
from narration import Failed, eventually, say

from lockstep.api.code import CODE_LABEL
from lockstep.api.core import CONFIG_MAPS, NODES, PODS
from lockstep.api.names import FENCED_ANNOTATION, KERNEL_LOG_ANNOTATION, UNHEALTHY_TAINT
from lockstep.kube.client import Client

EXAMPLES = Path(__file__).resolve().parent.parent
Json = dict[str, Any]

NAMESPACE = "tour"
WITHIN = 180.0
NPU = "huawei.com/Ascend910"
IRIS = "/tmp/iris"  # noqa: S108 - as the example names it
FLOWER = [5.1, 3.5, 1.4, 0.2]
FALLEN = "NVRM: Xid (PCI:0000:13:00): 79, pid=1, GPU has fallen off the bus."
"""What a driver writes of GPU 3, as simulated nodes number them."""

# Nodes of another kind than those that are there, so that no other gang gets them.
POOL: Json = {
    "apiVersion": "lockstep.dev/v1alpha1",
    "kind": "NodePool",
    "metadata": {"name": "npu"},
    "spec": {
        "max": 4,
        "arrival": "1s",
        "idle": "10m",
        "template": {"capacity": {"cpu": 64, "memory": "1Ti", NPU: 8}},
        "provider": {"simulated": {}},
    },
}
WIDE: Json = {
    "apiVersion": "lockstep.dev/v1alpha1",
    "kind": "TrainingJob",
    "metadata": {"name": "wide"},
    "spec": {
        "framework": "plain",
        "simulated": True,
        "roles": [
            {
                "name": "worker",
                "replicas": 2,
                "template": {
                    "spec": {
                        "containers": [
                            {
                                "name": "main",
                                "command": ["train"],
                                "resources": {"limits": {NPU: 8}},
                            }
                        ]
                    }
                },
            }
        ],
    },
}
WORKFLOW: Json = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Workflow",
    "metadata": {"name": "squares"},
    "spec": {
        "entrypoint": "main",
        "templates": [
            {
                "name": "main",
                "steps": [
                    [{"name": "make", "template": "make"}],
                    [
                        {
                            "name": "check",
                            "template": "check",
                            "arguments": {
                                "parameters": [
                                    {"name": "n", "value": "{{steps.make.outputs.result}}"}
                                ]
                            },
                        }
                    ],
                ],
            },
            {
                "name": "make",
                "script": {"image": "python", "command": ["python"], "source": "print(7 * 7)"},
            },
            {
                "name": "check",
                "inputs": {"parameters": [{"name": "n"}]},
                "container": {
                    "image": "busybox",
                    "command": ["test", "{{inputs.parameters.n}}", "=", "49"],
                },
            },
        ],
    },
}


class Tour:
    """The stops; all but the last are made at once, each on objects of its own."""

    def __init__(self, plane: ControlPlane, client: Client, directory: Path) -> None:
        self._plane = plane
        self._client = client
        self._directory = directory

    async def run(self) -> list[str]:
        """Make every stop; return what each proved.

        Raises:
            Failed: when one of them does not come out as it should.
        """
        namespace = {"metadata": {"name": NAMESPACE}, "apiVersion": "v1", "kind": "Namespace"}
        await self._apply("namespace", namespace)
        models = (self.data, self.serving, self.pipelines)
        stops = (*models, self.health, self.pools, self.teams, self.dialects, self.code)
        try:
            async with asyncio.TaskGroup() as group:
                made = [group.create_task(self._stop(stop)) for stop in stops]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [*(task.result() for task in made), await self._stop(self.cost)]

    async def data(self) -> str:
        """A dataset of Fluid's kinds is kept by the node and read by a pod as plain files."""
        pictures = self._directory / "pictures"
        pictures.mkdir()
        for number in range(3):
            (pictures / f"{number}.png").write_bytes(bytes(100_000))
        text = (EXAMPLES / "data" / "dataset.yaml").read_text()
        given = text.replace("local:///tmp/pictures", f"local://{pictures}")
        await self._apply("dataset", *yaml.safe_load_all(given))
        pod = "api/v1", "pods/reader"
        await self._until(*pod, lambda pod: pod["status"]["phase"] == "Succeeded")
        said = b"".join([chunk async for chunk in self._client.logs(NAMESPACE, "reader")]).decode()
        if said.strip() != "3 files":
            raise Failed(f"the reader of the dataset found {said.strip()!r} instead of 3 files")
        return "a pod read the 3 files of a Dataset from the node's cache"

    async def serving(self) -> str:
        """An InferenceService of KServe's kind answers through the router."""
        place = self._directory / "iris"
        place.mkdir(mode=0o755)
        await output(sys.executable, str(EXAMPLES / "serving" / "train.py"), str(place))
        text = (EXAMPLES / "serving" / "iris.yaml").read_text()
        await self._apply("iris", yaml.safe_load(text.replace(IRIS, str(place))))
        found = await self._until(
            "apis/serving.kserve.io/v1beta1",
            "inferenceservices/iris",
            lambda one: condition(one, "Ready") == "True",
        )
        url = f"{found['status']['url']}/v1/models/iris:predict"
        body = json.dumps({"instances": [FLOWER]}).encode()
        answer = await asyncio.to_thread(_post, url, body)
        if answer != {"predictions": [0]}:
            raise Failed(f"the model answered {answer} for a setosa")
        return "an InferenceService told a setosa through the router"

    async def health(self) -> str:
        """A line in a node's kernel log fences the GPU that it names."""
        note = {"metadata": {"annotations": {KERNEL_LOG_ANNOTATION: FALLEN}}}
        node = await self._emptiest()
        await self._client.patch(NODES, node, note)

        async def look() -> str | None:
            seen = await self._client.get(NODES, node)
            fenced = seen.metadata.annotations.get(FENCED_ANNOTATION, "")
            tainted = any(taint.key == UNHEALTHY_TAINT for taint in seen.spec.taints)
            return fenced or ("the whole node" if tainted else None)

        fenced = await eventually(look, "the broken GPU is fenced", within=WITHIN)
        return f"a GPU that fell off the bus of {node} is fenced: {fenced}"

    async def pools(self) -> str:
        """A gang that fits no node gets exactly the nodes that it needs."""
        await self._apply("pool", POOL, WIDE)
        await self._until(
            *("apis/lockstep.dev/v1alpha1", "trainingjobs/wide"),
            lambda job: job["status"].get("phase") == "Running",
        )
        names = [node.metadata.name for node in (await self._client.list(NODES)).items]
        grown = sum(name.startswith("npu-") for name in names)
        if grown != 2:
            raise Failed(f"the pool grew by {grown} nodes for a gang that needs 2")
        return "a gang that fitted nowhere got the 2 nodes that it needs, and runs"

    async def teams(self) -> str:
        """One object makes a team's namespaces, queue and rights."""
        await self._apply("team", yaml.safe_load((EXAMPLES / "teams" / "team.yaml").read_text()))
        await self._until(
            *("apis/lockstep.dev/v1alpha1", "teams/vision"),
            lambda team: condition(team, "Ready") == "True",
            namespace=None,
        )
        bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/vision-prod/rolebindings"
        count = len(json.loads(await self._client.get_raw(bindings))["items"])
        await self._client.get_raw("/apis/lockstep.dev/v1alpha1/queues/vision")
        return f"a Team has its namespaces, its queue and {count} bindings of rights in each"

    async def dialects(self) -> str:
        """A JobSet runs as it is: its leader finds its workers by the names that JobSet gives."""
        await self._apply(
            "jobset", yaml.safe_load((EXAMPLES / "dialects" / "jobset.yaml").read_text())
        )
        await self._until(
            *("apis/jobset.x-k8s.io/v1alpha2", "jobsets/hello"),
            lambda one: condition(one, "Completed") == "True",
        )
        return "a JobSet ran as it is, and tells so in JobSet's own words"

    async def pipelines(self) -> str:
        """An Argo Workflow hands a result from one step to the next."""
        await self._apply("workflow", WORKFLOW)
        found = await self._until(
            *("apis/argoproj.io/v1alpha1", "workflows/squares"),
            lambda one: one.get("status", {}).get("phase") in ("Succeeded", "Failed", "Error"),
        )
        if found["status"]["phase"] != "Succeeded":
            raise Failed(f"the workflow is {found['status']['phase']}")
        return "an Argo Workflow of 2 steps passed 49 from one to the other"

    async def code(self) -> str:
        """A directory goes along with a job, and each of its pods has it."""
        place = self._directory / "project"
        place.mkdir()
        (place / "train.py").write_text("from model import WORD\nprint(WORD)\n")
        (place / "model.py").write_text("WORD = 'brought'\n")
        given = ("--name", "mine", "--workers", "2", "--image", "python", "--code", str(place))
        job = ("submit", "plain", "-n", NAMESPACE, *given, "--wait", "--", "python", "train.py")
        await self._plane.command(*job)
        for pod in ("mine-worker-0", "mine-worker-1"):
            said = b"".join([chunk async for chunk in self._client.logs(NAMESPACE, pod)])
            if said != b"brought\n":
                raise Failed(f"{pod} said {said!r} instead of what its directory says")
        maps = await self._client.list(CONFIG_MAPS, NAMESPACE, label_selector=CODE_LABEL)
        owners = {owner.name for one in maps.items for owner in one.metadata.owner_references}
        if owners != {"mine"}:
            raise Failed(f"the parts of the directory are owned by {owners}")
        return "a directory of 2 files went to both pods of a job with an image"

    async def cost(self) -> str:
        """What was used is on record, by gang, with the GPU time that nobody held."""
        records = str(self._plane.data / "usage.db")
        rows = json.loads(await self._plane.command("cost", "--records", records, "-o", "json"))
        text = json.dumps(rows)
        if "moe-256" not in text:
            raise Failed("no usage of moe-256 is on record")
        return f"`lockstep cost` accounts for every GPU: {len(rows)} lines"

    async def _emptiest(self) -> str:
        """Return the simulated node with the fewest pods."""
        pods = Counter(pod.spec.node_name for pod in (await self._client.list(PODS)).items)
        names = [node.metadata.name for node in (await self._client.list(NODES)).items]
        return min((name for name in names if name.startswith("sim-")), key=lambda n: (pods[n], n))

    async def _stop(self, stop: Callable[[], Awaitable[str]]) -> str:
        proof = await stop()
        say(f"{stop.__name__}: {proof}")
        return proof

    async def _apply(self, name: str, *objects: Json) -> None:
        path = self._directory / f"{name}.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        await self._plane.command("submit", "-n", NAMESPACE, "-f", str(path))

    async def _until(
        self,
        group: str,
        name: str,
        done: Callable[[Json], bool],
        namespace: str | None = NAMESPACE,
    ) -> Json:
        path = f"/{group}/namespaces/{namespace}/{name}" if namespace else f"/{group}/{name}"

        async def look() -> Json | None:
            found: Json = json.loads(await self._client.get_raw(path))
            return found if found.get("status") and done(found) else None

        return await eventually(look, f"{name} is as it should be", within=WITHIN)


def condition(found: Json, kind: str) -> str:
    """Return the status of a condition; empty when the object has none of this type."""
    conditions = found.get("status", {}).get("conditions", [])
    return next((one["status"] for one in conditions if one["type"] == kind), "")


def _post(url: str, body: bytes) -> Any:
    if not url.startswith("http://127.0.0.1:"):
        raise Failed(f"the router is not on loopback: {url}")
    with urllib.request.urlopen(url, body, timeout=30) as answer:  # noqa: S310 - checked above
        return json.loads(answer.read())
