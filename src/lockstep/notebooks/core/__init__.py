"""What a notebook and a kernel need next, without I/O."""
