"""Kubeflow's training jobs (``kubeflow.org/v1``)."""
