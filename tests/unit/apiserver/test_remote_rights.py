"""The right that commands in containers and ports of pods take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.roles import JANE, granting

from lockstep.apiserver.auth.pki import Pki
from lockstep.apiserver.builtin import BUILTINS
from lockstep.apiserver.catalog import of_builtin
from lockstep.apiserver.handlers.call import Call
from lockstep.apiserver.handlers.remote import Remote
from lockstep.apiserver.routes import resource_route
from lockstep.apiserver.status import StatusError
from lockstep.apiserver.store import Store
from lockstep.http import Request
from lockstep.http.message import Peer

PODS = of_builtin(next(kind for kind in BUILTINS if kind.kind == "Pod"))


def rule(subresource: str, *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": [f"pods/{subresource}"], "verbs": list(verbs)}


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward"])
@pytest.mark.parametrize(
    ("granted", "code"),
    [
        (("get",), 403),  # the GET that begins a WebSocket is no reading
        (("get", "list", "watch", "update", "patch", "delete"), 403),
        (("create",), 404),  # allowed, and there is no such pod
        (("*",), 404),
    ],
)
async def test_running_something_in_a_pod_takes_the_right_to_create(
    tmp_path: Path, subresource: str, granted: tuple[str, ...], code: int
) -> None:
    path = f"/api/v1/namespaces/default/pods/talks/{subresource}"
    headers = {"upgrade": "websocket", "connection": "Upgrade"}
    request = Request("GET", f"{path}?command=id", headers, b"", Peer())
    route = resource_route(path)
    assert route is not None
    call = Call(request, route, "get", PODS, JANE, granting(rule(subresource, *granted)))
    store = Store(tmp_path / "store.db")
    try:
        with pytest.raises(StatusError) as refused:
            await Remote(store, Pki(tmp_path / "pki")).answer(call)
    finally:
        await store.close()
    assert refused.value.code == code
