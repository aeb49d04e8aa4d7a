"""The place of a job's code in its pods: an init container unpacks it, the command runs in it."""

from __future__ import annotations

from typing import Final

from lockstep.api.code import KEY, Code
from lockstep.api.imageless import NO_IMAGE
from lockstep.api.wire import Json

IMAGE: Final = "lockstep/code:latest"
"""What process nodes know without pulling it."""
_NAME: Final = "lockstep-code"
_PARTS: Final = "/lockstep/parts"


def shape(code: Code | None, spec: Json, image: str = "") -> None:
    """Let the main container find *code*, and run in it unless it names another directory.

    Where the container has an image, the init container has *image*, if there is one.
    """
    if code is None or not code.parts:
        return
    main = spec["containers"][0]
    parts = {"name": f"{_NAME}-parts", "mountPath": _PARTS, "readOnly": True}
    mount = {"name": _NAME, "mountPath": code.directory}
    unpacks: Json = {
        "name": _NAME,
        "image": IMAGE,
        "args": [_PARTS, code.directory, *code.parts],
        "volumeMounts": [parts, mount],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    if image and main.get("image") not in (None, "", NO_IMAGE):
        unpacks |= {"image": image, "command": ["python", "-m", "lockstep.train.unpack"]}
    spec["initContainers"] = [unpacks, *spec.get("initContainers", [])]
    names = dict.fromkeys(code.parts)
    items = [{"name": name, "items": [{"key": KEY, "path": name}]} for name in names]
    spec["volumes"] = [
        *spec.get("volumes", []),
        {"name": mount["name"], "emptyDir": {}},
        {"name": parts["name"], "projected": {"sources": [{"configMap": one} for one in items]}},
    ]
    main["volumeMounts"] = [*main.get("volumeMounts", []), mount]
    main.setdefault("workingDir", code.directory)
