"""Whose connection over loopback it is, by the kernel's table."""

from __future__ import annotations

import socket

import pytest

from lockstep.http.message import Peer
from lockstep.kube import peers
from lockstep.kube.peers import TABLE, is_trusted, owner

PEER, OWN = ("127.0.0.1", 40000), ("127.0.0.1", 9400)
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"
ROW = (
    "   1: 0100007F:9C40 0100007F:24B8 01 00000000:00000000 00:00000000 00000000  1007        0 7 1"
)
TURNED = (
    "   2: 0100007F:24B8 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 8 1"
)


@pytest.mark.parametrize(
    ("table", "uid"),
    [([HEAD, TURNED, ROW], 1007), ([HEAD, TURNED], None), ([], None)],
    ids=["its own end", "the server's end alone", "no table"],
)
def test_owner_is_the_user_of_the_other_end(table: list[str], uid: int | None) -> None:
    assert owner(PEER, OWN, table) == uid


@pytest.mark.skipif(not TABLE.exists(), reason="asks Linux")
def test_owner_of_a_real_connection_is_this_user() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as asking,
    ):
        assert is_trusted(Peer(ends=(asking.getsockname(), server.getsockname())))


@pytest.mark.parametrize("uid", [None, 65533])
def test_strangers_and_unknown_users_are_not_trusted(
    uid: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "owner", lambda _other, _own: uid)
    assert not is_trusted(Peer(ends=(PEER, OWN)))
    assert not is_trusted(Peer())
