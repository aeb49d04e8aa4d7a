"""A real control plane with its controllers, and with simulated nodes where a test wants them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from tests.support.kube_apiserver import DEFAULT, LEFT_BEHIND, KubeApiServer
from tests.support.kube_programs import Programs, controller_manager
from tests.support.scheduler import PartProcess
from tests.support.waiting import eventually_sync

READY_SECONDS = 60.0
WORKLOADS = (
    *(f"/apis/batch/v1/{DEFAULT}/{plural}" for plural in ("cronjobs", "jobs")),
    *(
        f"/apis/apps/v1/{DEFAULT}/{plural}"
        for plural in ("deployments", "statefulsets", "daemonsets", "replicasets")
    ),
)
EVERY_NAMESPACE_HAS = ("serviceaccounts/default", "configmaps/kube-root-ca.crt")


@dataclass
class KubeCluster(KubeApiServer):
    """kube-apiserver with kube-controller-manager, and every admission plugin that is usual.

    Pods therefore need a service account, which comes a moment after their namespace.
    """

    without_plugins: ClassVar[str] = ""
    left_behind: ClassVar[tuple[str, ...]] = (*WORKLOADS, *LEFT_BEHIND)

    controllers: Programs | None = field(default=None, repr=False)

    def start(self) -> KubeCluster:
        super().start()
        self.controllers = controller_manager(self).start()
        self.wait_for_namespace("default")
        return self

    def kill(self) -> None:
        if self.controllers is not None:
            self.controllers.kill()
        super().kill()

    def wait_for_namespace(self, name: str) -> None:
        """Wait until pods can be created in a namespace."""
        assert self.controllers is not None
        for path in EVERY_NAMESPACE_HAS:
            eventually_sync(
                lambda path=path: self._has(f"/api/v1/namespaces/{name}/{path}"),
                READY_SECONDS,
                f"{path} in {name} ({self.controllers.log})",
            )

    @contextmanager
    def simulated_nodes(self, spec: str) -> Iterator[None]:
        """Run simulated nodes, as many and such as *spec* says, while the block runs."""
        config = self.data / "kubeconfigs" / "simulate-nodes.kubeconfig"
        nodes = PartProcess(config, options=(spec,), part="simulate-nodes").start()
        try:
            yield
        finally:
            nodes.kill()

    def _has(self, path: str) -> bool:
        assert self.controllers is not None
        self.controllers.require()
        return self.request("GET", path).status == 200
