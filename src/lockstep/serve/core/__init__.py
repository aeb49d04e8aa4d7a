"""What a service needs, decided without I/O."""
