"""What has to go when something else is gone: decisions over the graph of objects, without I/O."""
