"""What is decided about shares, without I/O."""
