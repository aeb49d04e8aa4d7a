"""``python -m lockstep.pipelines.files fetch|keep``: a step's files in, its results out.

``fetch`` runs before the step's containers. ``keep`` runs beside them; told to stop, which is when
they have ended, it uploads what they wrote and leaves the results as its last message. What it
says counts only where the step succeeded, so nothing half done is ever read.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import zlib
from pathlib import Path
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.pipelines import store
from lockstep.pipelines.store import FilesError

MESSAGE = 4096
"""Most bytes of a last message."""

_BOOLEANS: Final = {"True": True, "False": False}
"""Words that components in Python write for a boolean; JSON has others."""


def fetch(orders: Json) -> None:
    """Bring every artefact to its path.

    Raises:
        FilesError: when one is not there or differs from its digest.
    """
    for one in orders["fetch"]:
        path = Path(one["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        if "raw" in one:
            path.write_text(one["raw"])
            _permit(path, one)
            continue
        found = store.fetch(one["uri"], path)
        wanted = one.get("digest")
        if wanted and found != wanted:
            raise FilesError(f"{one['uri']}: its digest is {found} and not {wanted}")
        _permit(path, one)


def keep(orders: Json) -> Json:
    """Return the results of the step: parameters as they are, artefacts once uploaded.

    Raises:
        FilesError: when one is missing, no JSON or cannot be uploaded.
    """
    found: Json = {}
    executor: Json = {}
    for one in orders["outputs"]:
        if one["kind"] == "Executor":
            executor = _executor(Path(one["path"]))
    parameters = executor.get("parameterValues") or {}
    for one in orders["outputs"]:
        name, path = one["name"], Path(one["path"])
        if one["kind"] == "Artifact":
            artefact = _upload(one, path, executor)
            if artefact is not None:
                found[name] = artefact
        elif one["kind"] != "Executor":
            value = parameters[name] if name in parameters else _parameter(one, path)
            if value is not None or name in parameters:
                found[name] = value
    return found


def _executor(path: Path) -> Json:
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise FilesError(f"{path} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise FilesError(f"{path} is no JSON object")
    return found


def _parameter(one: Json, path: Path) -> Any:
    try:
        text = path.read_text()
    except FileNotFoundError:
        if "default" in one:
            text = one["default"]
        elif one.get("optional"):
            return None
        else:
            raise FilesError(f"output {one['name']} is missing: there is no {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FilesError(f"output {one['name']}: {error}") from error
    if one["kind"] == "Text":
        return text.removesuffix("\n")
    if text.strip() in _BOOLEANS:
        return _BOOLEANS[text.strip()]
    try:
        return json.loads(text)
    except ValueError as error:
        raise FilesError(f"output {one['name']} is no JSON: {error}") from error


def _upload(one: Json, path: Path, executor: Json) -> Json | None:
    name, uri = one["name"], one["uri"]
    said = ((executor.get("artifacts") or {}).get(name) or {}).get("artifacts") or [{}]
    metadata = said[0].get("metadata") or {}
    told = said[0].get("uri") or uri
    if told.startswith("/"):
        # `dsl.get_uri` gives a file of the step's own.
        path = Path(told)
    elif told != uri:
        # A component may say that its artefact is somewhere else already.
        return {"name": name, "uri": told, "type": one["type"], "metadata": metadata}
    if not path.exists():
        if one.get("optional"):
            return None
        if not executor:
            raise FilesError(f"output {name} is missing: there is no {path}")
        # KFP's components need not write every file: an artefact may be metadata alone.
        return {"name": name, "uri": uri, "type": one["type"], "metadata": metadata}
    digest, size = store.upload(path, uri)
    return {
        "name": name,
        "uri": uri,
        "type": one["type"],
        "metadata": metadata,
        "digest": digest,
        "size": size,
    }


def encode(said: Json) -> str:
    """Return *said* as a last message, compressed where it is long.

    Raises:
        FilesError: when it is too large all the same.
    """
    text = json.dumps(said, ensure_ascii=False)
    if len(text.encode()) <= MESSAGE:
        return text
    small = "z:" + base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    if len(small) > MESSAGE:
        raise FilesError(
            f"the parameters are too large: {len(text)} characters, {len(small)} compressed, and "
            f"at most {MESSAGE}; hand large values on as artefacts"
        )
    return small


def say(message: Path, said: Json) -> None:
    """Leave *said* as the container's last message."""
    try:
        text = encode(said)
    except FilesError as error:
        text = encode({"error": str(error)})
    message.write_text(text)


def _permit(path: Path, order: Json) -> None:
    """Let the step's own user read what was fetched; a mode that is stated holds instead."""
    below = tuple(path.rglob("*")) if path.is_dir() else ()
    for one in (path, *below):
        one.chmod(0o777 if one.is_dir() else 0o666)
    if order.get("mode"):
        for one in (*reversed(below), path) if order.get("recursive") else (path,):
            one.chmod(order["mode"])


def _prepare(orders: Json) -> None:
    """Make the directories that outputs lie in: KFP's components expect them, others make them."""
    kfp = any(one["kind"] == "Executor" for one in orders["outputs"])
    for one in orders["outputs"] if kfp else ():
        parent = Path(one["path"]).parent
        missing = [p for p in (parent, *parent.parents) if not p.exists()]
        parent.mkdir(parents=True, exist_ok=True)
        for made in missing:
            made.chmod(0o777)


def _stand_by(orders: Json) -> None:
    """Wait for the signal that the step's containers have ended."""
    # Blocked from here on, the signal waits until it is asked for.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    _prepare(orders)
    state = Path(orders["state"])
    state.joinpath("ready").touch()
    signal.sigwait({signal.SIGTERM})


def main() -> None:
    """Do what the argument says with the orders in the environment."""
    mode = sys.argv[1] if len(sys.argv) == 2 else ""
    orders: Json = json.loads(os.environ["LOCKSTEP_FILES"])
    message = Path(orders["message"])
    try:
        if mode == "fetch":
            fetch(orders)
        elif mode == "keep":
            _stand_by(orders)
            say(message, {"outputs": keep(orders)})
        else:
            sys.exit("usage: python -m lockstep.pipelines.files fetch|keep")
    except (FilesError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        if mode == "fetch":
            message.write_text(str(error)[:MESSAGE])
            sys.exit(1)
        say(message, {"error": str(error)})


if __name__ == "__main__":
    main()
