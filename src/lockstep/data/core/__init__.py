"""What to cache where and in which order, decided without I/O."""
