"""Runs of steps: graphs whose steps are pods, jobs and other objects, and model versions."""
