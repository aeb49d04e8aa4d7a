"""Keys and tokens, all derived from one secret, so that no part holds more than it needs."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Final

MASTER_KEY: Final = "key"


def _derived(master: bytes, *words: str) -> str:
    text = "\0".join(words)
    return hmac.digest(master, text.encode(), sha256).hex()


def kernel_token(master: bytes, uid: str) -> str:
    """Return by which token a kernel's keeper knows the gateway and the controller."""
    return _derived(master, "kernel", uid)


def owner_key(master: bytes, namespace: str, owner: str) -> str:
    """Return the key that signs what is kept of an owner's sessions."""
    return _derived(master, "owner", namespace, owner)


def server_token(master: bytes, uid: str, issued: str) -> str:
    """Return by which token a notebook's server may have kernels in its namespace.

    It is for the pod that is made when it is *issued* (Unix time, in seconds), and ends with it.
    """
    return _derived(master, "server", uid, issued)


def page_token(master: bytes, uid: str, issued: str) -> str:
    """Return the token that a notebook's own server asks for; the console's door sends it.

    JupyterLab shows it to its own page, so each pod has another one.
    """
    return _derived(master, "page", uid, issued)


def same(given: str, wanted: str) -> bool:
    """Tell whether two tokens are equal, in constant time."""
    return hmac.compare_digest(given.encode(), wanted.encode())
