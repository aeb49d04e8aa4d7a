"""Models that a file names, as KServe's agents have it: fetched when they are loaded."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from lockstep.serve.fetch import FetchError, fetch
from lockstep.serve.server.frameworks import LoadError, Model, find, load

VARIABLE = "LOCKSTEP_MODEL_CONFIG"
"""Environment variable with the path of the file, whose models alone are loaded."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class Configured:
    """Loads models by name, each from where the file says; one that is there is not read again."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._loaded: dict[str, tuple[str, Model]] = {}

    def uris(self) -> dict[str, str]:
        """Return where each model of the file comes from.

        Raises:
            LoadError: when the file is no list of models.
        """
        try:
            told: Any = json.loads(self._file.read_text() or "[]")
            found = {str(one["modelName"]): str(one["modelSpec"]["storageUri"]) for one in told}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise LoadError(f"{self._file}: {error}") from error
        return {name: uri for name, uri in found.items() if _NAME.fullmatch(name)}

    def load(self, name: str, uri: str = "") -> Model:
        """Return the model called *name*; *uri*, where given, is what the file has to say.

        Raises:
            LoadError: when the file has it not, or not yet, or it cannot be fetched or read.
        """
        known = self.uris()
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise LoadError(f"no TrainedModel {name!r} is configured; there are: {there}")
        if uri and known[name] != uri:
            raise LoadError(f"{name} still comes from {known[name]}, not from {uri}")
        uri = known[name]
        before = self._loaded.get(name)
        if before is not None and before[0] == uri:
            return before[1]
        place = tempfile.mkdtemp(prefix=f"model-{name}-")
        try:
            fetch(uri, Path(place))
            model = load(find(place), name, place)
        except FetchError as error:
            raise LoadError(str(error)) from error
        finally:
            # Models are read whole into memory.
            shutil.rmtree(place, ignore_errors=True)
        self._loaded[name] = uri, model
        return model

    def forget(self, name: str) -> None:
        """Drop a model that is served no more."""
        self._loaded.pop(name, None)
