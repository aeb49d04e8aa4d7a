"""Lockstep runs AI workloads on GPU clusters."""

__version__ = "0.1.0"
