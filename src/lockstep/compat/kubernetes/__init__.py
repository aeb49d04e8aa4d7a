"""Kubernetes' own jobs (``batch``)."""
