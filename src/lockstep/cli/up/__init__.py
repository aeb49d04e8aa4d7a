"""``lockstep up``: the embedded control plane as a few supervised processes."""
