"""Decisions of the scheduler: functions of state and time over arrays."""
