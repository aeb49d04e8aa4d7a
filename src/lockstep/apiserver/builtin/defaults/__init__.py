"""The defaults of every struct inside the built-in kinds, by the name of its component.

They are those of Kubernetes v1.36, as far as users see them.
"""

from __future__ import annotations

from collections.abc import Callable

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.defaults import others, pods, services, workloads
from lockstep.apiserver.builtin.defaults.others import date_phase, hold_until_empty
from lockstep.apiserver.builtin.defaults.pods import waiting
from lockstep.apiserver.builtin.defaults.services import families
from lockstep.apiserver.builtin.defaults.workloads import (
    number_template,
    renumber_template,
    select_own_pods,
)
from lockstep.apiserver.builtin.normal import Fill, Normalizer

FILLS: dict[str, Fill] = {**pods.FILLS, **workloads.FILLS, **services.FILLS, **others.FILLS}
# What happens to a new object only, and not when it is changed later.
ONCE: dict[str, Fill] = {
    "io.k8s.api.apps.v1.DaemonSet": number_template,
}
CHANGES: dict[str, Callable[[Json, Json], None]] = {
    "io.k8s.api.apps.v1.DaemonSet": renumber_template,
}
"""What the server itself notes of a change, given the new object and the stored one."""
BEGINNINGS: dict[str, Fill] = {
    "io.k8s.api.core.v1.Namespace": hold_until_empty,
    "io.k8s.api.core.v1.PersistentVolume": date_phase,
    "io.k8s.api.core.v1.Pod": waiting,
    "io.k8s.api.core.v1.Service": families,
    "io.k8s.api.batch.v1.Job": select_own_pods,
}
"""What the server itself decides about a new object once its defaults are filled in."""

_normalizer = Normalizer(FILLS)


def prepare(component: str, new: Json, old: Json | None) -> None:
    """Bring *new*, an object of *component*, into the form in which it is stored, in place."""
    if old is None and component in ONCE:
        ONCE[component](new)
    _normalizer.normalize(component, new, old)
    if old is not None and component in CHANGES:
        CHANGES[component](new, old)
