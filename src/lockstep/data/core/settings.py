"""How a store is reached, where one Secret says all of it: KServe's ``storage-config``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from lockstep.api.dataset_cache import CacheMount

STORAGE_CONFIG: Final = "storage_config"
_OPTIONS: Final = {"endpoint_url": "endpoint", "region": "region"}
_SECRETS: Final = ("access_key_id", "secret_access_key", "session_token")


def expanded(mount: CacheMount, secrets: Mapping[str, str]) -> tuple[CacheMount, Mapping[str, str]]:
    """Return *mount* and its *secrets* with what its storage configuration says beside them.

    Raises:
        ValueError: when the configuration is no object of JSON.
    """
    text = secrets.get(STORAGE_CONFIG)
    if not text:
        return mount, secrets
    try:
        told: Any = json.loads(text)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise ValueError("the key of the Secret storage-config holds no object of JSON")
    options = {ours: str(told[name]) for name, ours in _OPTIONS.items() if told.get(name)}
    keys = {name: str(told[name]) for name in _SECRETS if told.get(name)}
    if str(told.get("anonymous", "")).lower() == "true":
        keys = {}
    return structs.replace(mount, options={**options, **mount.options}), keys
