"""Kubernetes' own gangs (``scheduling.k8s.io``): PodGroups that pods name."""
