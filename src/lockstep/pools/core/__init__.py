"""What pools decide, as functions of the scheduler's state, the pools and the time. Pure."""
