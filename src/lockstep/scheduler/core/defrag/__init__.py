"""Defragmentation: running jobs move so that a waiting one fits; nobody loses a place."""
