"""Kubeflow Pipelines: what its compiler writes (IR 2.1), as runs of ours."""
