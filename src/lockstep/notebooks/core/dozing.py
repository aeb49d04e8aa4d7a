"""Pages that are only looked at, such as a TensorBoard: they sleep meanwhile. Pure.

The console's door notes when a page is asked for, in the annotation that Kubeflow has for it, and
wakes one that sleeps.
"""

from __future__ import annotations

from typing import Final

from lockstep.api import duration, timestamp
from lockstep.compat.kubeflow.notebook import LAST_ACTIVITY, STOPPED, Notebook
from lockstep.compat.kubeflow.tensorboard import APP_LABEL

ASLEEP: Final = "asleep"
"""What stands in the annotation of a page that sleeps; one stopped by its user says another."""
SLEEP_AFTER: Final = "lockstep.dev/sleep-after"
"""Annotation: how long a page may be without a request before it sleeps, as 2h; or never."""
NEVER: Final = "never"
AFTER: Final = 1800.0
"""Seconds for pages that do not say."""
NOTED_EVERY: Final = 60.0
"""Seconds between two notes of requests, however many come."""


def is_page(notebook: Notebook) -> bool:
    """Tell whether a Notebook is only looked at: it can be ended and loses nothing."""
    return APP_LABEL in notebook.metadata.labels


def asleep(notebook: Notebook) -> bool:
    """Tell whether a page sleeps, and wakes when it is asked for."""
    return is_page(notebook) and notebook.metadata.annotations.get(STOPPED) == ASLEEP


def stopped(notebook: Notebook) -> bool:
    """Tell whether its user stopped a notebook: it stays so when its page is opened."""
    return notebook.metadata.annotations.get(STOPPED, ASLEEP) != ASLEEP


def left(notebook: Notebook, now: float) -> float | None:
    """Return the seconds after which a page that runs is to sleep; None for what never does."""
    if not is_page(notebook) or STOPPED in notebook.metadata.annotations:
        return None
    patience = _patience(notebook.metadata.annotations.get(SLEEP_AFTER, ""))
    return None if patience is None else last_asked(notebook) + patience - now


def _patience(said: str) -> float | None:
    if said == NEVER:
        return None
    try:
        return duration.parse(said) if said else AFTER
    except ValueError:
        return AFTER


def last_asked(notebook: Notebook) -> float:
    """Return when a page was last asked for (Unix time); its creation where it never was."""
    meta = notebook.metadata
    told = timestamp.read(meta.annotations.get(LAST_ACTIVITY))
    return max(told or 0.0, timestamp.read(meta.creation_timestamp) or 0.0)


def noted(notebook: Notebook, now: float) -> dict[str, str | None]:
    """Return the annotations that a request at *now* changes; none where it is noted already."""
    found: dict[str, str | None] = {}
    if not is_page(notebook):
        return found
    if now - last_asked(notebook) > NOTED_EVERY:
        found[LAST_ACTIVITY] = timestamp.show(now)
    if asleep(notebook):
        found |= {LAST_ACTIVITY: timestamp.show(now), STOPPED: None}
    return found
