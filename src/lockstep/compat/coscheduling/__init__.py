"""The scheduler plugin coscheduling (``scheduling.x-k8s.io``): PodGroups, as in Koordinator."""
