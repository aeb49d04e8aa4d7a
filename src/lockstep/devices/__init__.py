"""The node agent's devices: found, handed out, watched."""
