"""Which gang and queue a pod belongs to, in the words of each system."""

from __future__ import annotations

import pytest

from lockstep.compat.membership import gang_of, members_of, queue_of_pod

Words = dict[str, str]

GANGS: dict[str, tuple[Words, Words]] = {
    "ours": ({"lockstep.dev/gang": "g"}, {}),
    "volcano": ({}, {"scheduling.k8s.io/group-name": "g"}),
    "coscheduling": ({"scheduling.x-k8s.io/pod-group": "g"}, {}),
    "koordinator": ({}, {"gang.scheduling.koordinator.sh/name": "g"}),
    "kai": ({}, {"pod-group-name": "g"}),
    "kueue": ({"kueue.x-k8s.io/pod-group-name": "g"}, {}),
    "yunikorn": ({"applicationId": "g"}, {"yunikorn.apache.org/task-group-name": "a"}),
    "claimed twice": (
        {"scheduling.x-k8s.io/pod-group": "g"},
        {"scheduling.k8s.io/group-name": "other"},
    ),
}


@pytest.mark.parametrize("system", GANGS)
def test_a_pods_gang_is_read_in_the_words_of(system: str) -> None:
    assert gang_of(*GANGS[system]) == "g"


def test_a_pod_of_no_group_has_no_gang() -> None:
    assert gang_of({"app": "x"}, {}) == ""


TASKS = '[{"name": "a", "minMember": 1}, {"name": "b", "minMember": 3, "minResource": {}}]'
SIZES: dict[str, tuple[Words, int]] = {
    "kueue": ({"kueue.x-k8s.io/pod-group-total-count": "3"}, 3),
    "koordinator": ({"gang.scheduling.koordinator.sh/min-available": "2"}, 2),
    "yunikorn": (
        {"yunikorn.apache.org/task-group-name": "a", "yunikorn.apache.org/task-groups": TASKS},
        4,
    ),
    "yunikorn, broken": (
        {"yunikorn.apache.org/task-group-name": "a", "yunikorn.apache.org/task-groups": "[3"},
        0,
    ),
    "no number": ({"kueue.x-k8s.io/pod-group-total-count": "many"}, 0),
    "nothing": ({}, 0),
}


@pytest.mark.parametrize("system", SIZES)
def test_how_many_start_together_is_read_in_the_words_of(system: str) -> None:
    annotations, size = SIZES[system]
    assert members_of({}, annotations) == size


QUEUES: dict[str, tuple[Words, Words, str]] = {
    "ours": ({"lockstep.dev/queue": "q", "kai.scheduler/queue": "other"}, {}, "q"),
    "kueue": ({"kueue.x-k8s.io/queue-name": "q"}, {}, "team.q"),
    "kai": ({"kai.scheduler/queue": "q"}, {}, "q"),
    "volcano": ({}, {"scheduling.volcano.sh/queue-name": "q"}, "q"),
    "koordinator": ({"quota.scheduling.koordinator.sh/name": "q"}, {}, "q"),
}


@pytest.mark.parametrize("system", QUEUES)
def test_a_pods_queue_is_read_in_the_words_of(system: str) -> None:
    labels, annotations, queue = QUEUES[system]
    assert queue_of_pod(labels, annotations, "team") == queue
