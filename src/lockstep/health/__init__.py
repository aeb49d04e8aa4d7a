"""Faults of jobs and of the machines under them: noticed, explained and healed."""
