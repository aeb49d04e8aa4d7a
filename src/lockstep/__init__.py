"""Lockstep runs AI workloads on GPU clusters."""

__version__ = "0.2.0"
