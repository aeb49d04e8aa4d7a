"""Fluid's datasets, runtimes and data operations."""
