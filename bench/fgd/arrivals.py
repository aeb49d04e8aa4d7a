"""What arrives, and in which order, from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from bench.fgd.lists import ListedPod


def inflated(
    pods: Sequence[ListedPod], capacity: int, ratio: float, random: Random
) -> list[ListedPod]:
    """Return the list shuffled, brought to *ratio* times the cluster's GPU *capacity* in milli.

    Copies of pods drawn from the whole list are added behind it until the next would go beyond the
    ratio; from a list that asks for more, pods are taken out at random. As in the published
    program, that next pod is counted by what it asks of one GPU, and the copies stay in the order
    in which they were drawn.
    """
    arrivals = sorted(pods, key=lambda pod: pod.name)
    originals = list(arrivals)
    random.shuffle(arrivals)
    limit = ratio * capacity
    asked = sum(pod.request.gpu for pod in arrivals)
    while asked > limit:
        asked -= arrivals.pop(random.randrange(len(arrivals))).request.gpu
    # Nothing but CPU pods would never reach the limit.
    if asked == 0 or len(arrivals) < len(originals):
        return arrivals
    while True:
        pod = random.choice(originals)
        if asked + pod.request.milli > limit:
            return arrivals
        asked += pod.request.gpu
        arrivals.append(pod)
