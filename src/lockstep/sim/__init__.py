"""Simulation: the scheduler's own core, driven by lists and clocks instead of an API server."""
