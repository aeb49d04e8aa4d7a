"""The environment with the kfp SDK, and compiling with it."""
