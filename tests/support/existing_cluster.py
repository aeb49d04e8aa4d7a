"""A cluster that is there already, for tests: that of the present kubeconfig."""

from __future__ import annotations

import contextlib
import http.client
import os
import ssl
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn
from urllib.parse import urlsplit

import pytest
import yaml
from tests.support import installed
from tests.support.apiserver import Answer
from tests.support.kube_apiserver import NOW
from tests.support.kube_cluster import KubeCluster
from tests.support.waiting import eventually_sync, stretched

from lockstep.kube.config import ClusterConfig

GONE_SECONDS = 120.0
ASKED_FOR = os.environ.get("USE_EXISTING_CLUSTER", "").lower() in ("1", "true", "yes")


@dataclass
class ExistingCluster(KubeCluster):
    """Used like a control plane of the tests' own, but never killed.

    What was there before the tests stays; what they make goes between them.
    """

    # Events go by themselves, and there are too many to delete one by one.
    left_behind: ClassVar[tuple[str, ...]] = tuple(
        path for path in KubeCluster.left_behind if not path.endswith("/events")
    )

    config: ClusterConfig = field(default_factory=lambda: ClusterConfig(server=""))
    before: dict[str, set[str]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.config.server

    def start(self) -> ExistingCluster:
        if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1:
            pytest.fail("tests cannot share an existing cluster side by side: give pytest -n0")
        self.config = ClusterConfig.load()
        self._write_kubeconfig()
        installed.install(self)
        installed.write_tokens(self)
        self.before = {path: set(self._names(path)) for path in self.left_behind}
        return self

    def kill(self) -> NoReturn:
        pytest.skip("an existing cluster is not killed")

    def stop(self) -> NoReturn:
        self.kill()

    def empty(self) -> None:
        """Delete what was not there when the tests began."""
        with contextlib.closing(self.connect()) as connection:
            for path in self.left_behind:
                collection, _, _ = path.partition("?")
                for name in self._left(path):
                    one = f"{collection}/{name}"
                    gone = self.request("DELETE", one, NOW, connection=connection)
                    assert gone.status in (200, 202, 404), gone.body
        for path in self.left_behind:
            eventually_sync(
                lambda path=path: not self._left(path), GONE_SECONDS, f"{path} is as it was"
            )

    def wait_for_namespace(self, name: str) -> None:
        path = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        eventually_sync(lambda: self.request("GET", path).status == 200, what=path)

    def connect(self, **options: Any) -> http.client.HTTPSConnection:
        address = urlsplit(self.config.server)
        assert address.hostname is not None
        return http.client.HTTPSConnection(
            address.hostname,
            address.port or 443,
            context=self.context(**options),
            timeout=stretched(30),
        )

    def context(self, *, certificate: bool = True, user: str = "admin") -> ssl.SSLContext:
        if user != "admin":
            pytest.skip(f"an existing cluster has no certificate of {user}")
        context = ssl.create_default_context(cafile=str(self.data / "pki" / "ca.crt"))
        if certificate and self.config.client_certificate is not None:
            pki = self.data / "pki"
            context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        return context

    def request(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        headers = dict(options.pop("headers", None) or {})
        if self.config.token:
            headers.setdefault("Authorization", f"Bearer {self.config.token}")
        return super().request(method, path, body, headers=headers, **options)

    def _left(self, path: str) -> list[str]:
        return [name for name in super()._left(path) if name not in self.before.get(path, ())]

    def _names(self, path: str) -> list[str]:
        # A kind is served a moment after its definition says so.
        listed = eventually_sync(lambda: self._listed(path), what=f"{path} is served")
        return [item["metadata"]["name"] for item in listed["items"]]

    def _listed(self, path: str) -> Any:
        answer = self.request("GET", path)
        return answer.json if answer.status == 200 else None

    def _write_kubeconfig(self) -> None:
        """Write who to talk to, and as whom, where the fixtures of other servers have it."""
        config, pki = self.config, self.data / "pki"
        if config.ca is None or not (config.client_certificate or config.token):
            pytest.fail("USE_EXISTING_CLUSTER needs a CA, and a certificate or a token")
        pki.mkdir(parents=True, mode=0o700)
        (pki / "ca.crt").write_bytes(config.ca)
        user: dict[str, str] = {}
        if config.client_certificate is not None and config.client_key is not None:
            (pki / "admin.crt").write_bytes(config.client_certificate)
            (pki / "admin.key").write_bytes(config.client_key)
            user["client-certificate"] = str(pki / "admin.crt")
            user["client-key"] = str(pki / "admin.key")
        if config.token:
            user["token"] = config.token
        cluster = {"server": config.server, "certificate-authority": str(pki / "ca.crt")}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        self.kubeconfig.write_text(yaml.safe_dump(document))
