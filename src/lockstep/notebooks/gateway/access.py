"""Who asks the gateway, and which kernels are theirs."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from lockstep.api import timestamp
from lockstep.api.core import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Pod
from lockstep.api.names import GROUP
from lockstep.api.notebooks import Kernel
from lockstep.compat.kubeflow.notebook import Notebook
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer
from lockstep.notebooks.core import keys, notebook_pod
from lockstep.notebooks.master import Master

REMEMBERED: Final = 4.0
"""Seconds for which an answer of the API server about a token counts."""
MOST_REMEMBERED: Final = 10_000
ISSUED_WITHIN: Final = 600.0
"""Most seconds between a server's token and the pod that it was made for."""
CODE_SECONDS: Final = 600.0
"""Seconds for which a code may be used, once."""
MOST_CODES: Final = 10_000


class Refused(Exception):
    """The one who asks is not known, or may not; the message says which."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Asker:
    """One who has kernels: a notebook's server, or a person with a Kubernetes token."""

    namespace: str
    owner: str
    notebook: str = ""

    def has(self, kernel: Kernel) -> bool:
        """Return whether *kernel* is theirs."""
        return (
            kernel.metadata.namespace == self.namespace
            and kernel.spec.owner == self.owner
            and kernel.spec.notebook == self.notebook
        )


@dataclass(frozen=True, slots=True)
class Code:
    """What stands for a token once, in an address: for one user and one kernel."""

    token: str = field(repr=False)
    namespace: str
    kernel: str
    until: float


@dataclass
class Access:
    """Finds out who asks."""

    client: Client
    notebooks: Informer[Notebook]
    pods: Informer[Pod]
    master: Master
    clock: Callable[[], float] = time.monotonic
    _codes: dict[str, Code] = field(default_factory=dict, repr=False)
    _known: dict[tuple[str, str], tuple[float, Asker]] = field(default_factory=dict, repr=False)

    async def asker(self, headers: Mapping[str, str], namespace: str) -> Asker:
        """Return who asks with *headers* for something in *namespace*.

        Raises:
            Refused: when they are not known or may not have kernels there.
            ApiError: when the API server cannot be asked.
        """
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() not in ("bearer", "token") or not token:
            raise Refused(401, "send 'Authorization: Bearer TOKEN' (--GatewayClient.auth_token)")
        if token.count("/") == 3:
            return await self._server(token)
        found = self._known.get((token, namespace))
        if found is not None and found[0] > self.clock():
            return found[1]
        asker = await self._person(token, namespace)
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[token, namespace] = (self.clock() + REMEMBERED, asker)
        return asker

    def code(self, headers: Mapping[str, str], namespace: str, kernel: str) -> str:
        """Return what stands for the token of *headers* once, for the channels of *kernel*."""
        now = self.clock()
        self._codes = {text: one for text, one in self._codes.items() if one.until > now}
        if len(self._codes) >= MOST_CODES:
            raise Refused(429, f"there are {MOST_CODES} codes that were not used; try again later")
        made = secrets.token_urlsafe(32)
        token = headers.get("Authorization", "").partition(" ")[2].strip()
        self._codes[made] = Code(token, namespace, kernel, now + CODE_SECONDS)
        return made

    def redeem(self, code: str, kernel: str) -> Code:
        """Return what a code stands for, and forget it.

        Raises:
            Refused: when it is unknown, was used, is too old or for another kernel.
        """
        found = self._codes.pop(code, None)
        if found is None or found.until < self.clock() or found.kernel != kernel:
            raise Refused(401, "this code was used, is too old or is for another kernel")
        return found

    async def _server(self, token: str) -> Asker:
        space, name, issued, given = token.split("/")
        notebook = self.notebooks.get(space, name)
        uid = notebook.metadata.uid if notebook is not None else ""
        wanted = keys.server_token(await self.master.key(), uid, issued)
        if notebook is None or not keys.same(given, wanted):
            raise Refused(401, "this is no notebook's token")
        pod = self.pods.get(space, notebook_pod.pod_name(notebook))
        made = timestamp.read(pod.metadata.creation_timestamp) if pod is not None else None
        if made is None or abs(made - int(issued)) > ISSUED_WITHIN:
            raise Refused(401, "this token was for a pod of the notebook that has ended")
        return Asker(space, f"notebook/{name}", name)

    async def _person(self, token: str, namespace: str) -> Asker:
        review = await self.client.create(TOKEN_REVIEWS, {"spec": {"token": token}})
        if not review.status.get("authenticated"):
            raise Refused(401, "the API server does not know this token")
        user = review.status.get("user") or {}
        attributes = {
            "namespace": namespace,
            "verb": "create",
            "group": GROUP,
            "resource": "kernels",
        }
        spec = {
            "user": user.get("username", ""),
            "groups": user.get("groups", []),
            "uid": user.get("uid", ""),
            "extra": user.get("extra", {}),
            "resourceAttributes": attributes,
        }
        answer = await self.client.create(SUBJECT_ACCESS_REVIEWS, {"spec": spec})
        if not answer.status.get("allowed"):
            raise Refused(403, f"{spec['user']} may not create kernels in namespace {namespace}")
        return Asker(namespace, str(spec["user"]))
