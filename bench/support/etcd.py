"""Filling a cluster quickly: objects written where kube-apiserver keeps them.

Tens of thousands of pods take minutes through the API. One of each kind is made there, with all
that the server adds to it; its copies go straight into etcd, and the server reads them as its own.
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

BATCH = 100
"""Objects in one transaction; etcd allows 128."""


def put_all(port: int, prefix: str, objects: Iterable[dict[str, Any]]) -> None:
    """Write *objects*, whole and with uids, under *prefix* (``/registry/pods/default``)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        for batch in _batches(objects):
            puts = [{"requestPut": _put(prefix, obj)} for obj in batch]
            connection.request("POST", "/v3/kv/txn", json.dumps({"success": puts}))
            answer = connection.getresponse()
            said = answer.read()
            assert answer.status == 200, said
    finally:
        connection.close()


def _put(prefix: str, obj: dict[str, Any]) -> dict[str, str]:
    key = f"{prefix}/{obj['metadata']['name']}"
    return {"key": _base64(key.encode()), "value": _base64(json.dumps(obj).encode())}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _batches(objects: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    waiting = iter(objects)
    while batch := list(islice(waiting, BATCH)):
        yield batch
