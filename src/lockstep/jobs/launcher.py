"""The place of launchers in the pods of a job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lockstep.api import duration
from lockstep.api.imageless import NO_IMAGE
from lockstep.api.rendezvous import CA_KEY, WORLD_SUFFIX
from lockstep.api.roles import launched
from lockstep.api.training import TrainingJob
from lockstep.api.wire import Json

COMMAND: Final = "lockstep-run"
ACCOUNT: Final = "/var/run/secrets/lockstep.dev"
"""Where a launcher finds its token and the authority of the API server."""
KEY_SUFFIX: Final = "-key"
"""The Secret with the key by which a job's launchers know each other."""
_VOLUME: Final = "lockstep-launcher"
_BROUGHT: Final = "lockstep-run"
HOME: Final = "/opt/lockstep-run"
"""Where an init container brings it to (``lockstep.train.deliver``)."""
_TOKEN_SECONDS: Final = 3600


def shape(job: TrainingJob, spec: Json, image: str = "") -> None:
    """Put the launcher in front of the main container's command, where *job* has launchers.

    Where the container has an image, an init container with *image*, if there is one, brings it.
    """
    if not launched(job):
        return
    main = spec["containers"][0]
    program = COMMAND
    if image and main.get("image") not in (None, "", NO_IMAGE):
        program = f"{HOME}/bin/{COMMAND}"
        _bring(spec, main, image)
    main["command"] = [program, "--", *main["command"]]
    main["env"] = [*_environment(job), *main.get("env", [])]
    main["volumeMounts"] = [
        *main.get("volumeMounts", []),
        {"name": _VOLUME, "mountPath": ACCOUNT, "readOnly": True},
    ]
    token = {"path": "token", "expirationSeconds": _TOKEN_SECONDS}
    authority = {
        "name": job.metadata.name + WORLD_SUFFIX,
        "items": [{"key": CA_KEY, "path": CA_KEY}],
        "optional": True,
    }
    key = {"name": job.metadata.name + KEY_SUFFIX, "items": [{"key": "key", "path": "key"}]}
    sources = [{"serviceAccountToken": token}, {"configMap": authority}, {"secret": key}]
    spec["volumes"] = [
        *spec.get("volumes", []),
        {"name": _VOLUME, "projected": {"sources": sources}},
    ]


def _bring(spec: Json, main: Json, image: str) -> None:
    mount = {"name": _BROUGHT, "mountPath": HOME}
    few = {"cpu": "100m", "memory": "64Mi"}
    brings = {
        "name": _BROUGHT,
        "image": image,
        "command": ["python", "-m", "lockstep.train.deliver", HOME],
        "volumeMounts": [mount],
        "resources": {"requests": few, "limits": few},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    spec["initContainers"] = [brings, *spec.get("initContainers", [])]
    spec["volumes"] = [*spec.get("volumes", []), {"name": _BROUGHT, "emptyDir": {}}]
    main["volumeMounts"] = [*main.get("volumeMounts", []), {**mount, "readOnly": True}]


def _saving(job: TrainingJob) -> Iterator[Json]:
    """Return what tells the launcher where to save, and how often."""
    saves = job.spec.checkpoint
    if saves is None or not saves.directory:
        return
    # Not by the name alone: a job that is submitted anew begins anew.
    place = f"{saves.directory.rstrip('/')}/{job.metadata.name}-{job.metadata.uid[:8]}"
    yield {"name": "LOCKSTEP_CHECKPOINTS", "value": place}
    if saves.interval is not None:
        seconds = f"{duration.parse(saves.interval):g}"
        yield {"name": "LOCKSTEP_SAVE_SECONDS", "value": seconds}


def _environment(job: TrainingJob) -> list[Json]:
    fields = {
        "LOCKSTEP_NAMESPACE": "metadata.namespace",
        "LOCKSTEP_POD": "metadata.name",
        "LOCKSTEP_POD_UID": "metadata.uid",
        "LOCKSTEP_POD_IP": "status.podIP",
    }
    notice = job.spec.recovery.spot_notice
    asks = [{"name": "LOCKSTEP_SPOT_NOTICE", "value": notice}] if notice else []
    if job.spec.recovery.capture == "None":
        asks.append({"name": "LOCKSTEP_CAPTURE", "value": "off"})
    return [
        *_saving(job),
        *asks,
        {"name": "LOCKSTEP_WORLD", "value": job.metadata.name + WORLD_SUFFIX},
        *(
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
            for name, path in fields.items()
        ),
    ]
