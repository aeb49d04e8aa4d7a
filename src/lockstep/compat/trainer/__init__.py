"""Kubeflow's Trainer, version 2 (``trainer.kubeflow.org``): jobs and the runtimes they name."""
