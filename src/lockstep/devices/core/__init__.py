"""Decisions about devices, without I/O: what there is, who gets it, how it is told."""
