"""What a team consists of and what has to change for it, without I/O."""
