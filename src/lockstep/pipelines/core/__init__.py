"""What a run does next, decided without I/O."""
