"""The process node: runs pods as real processes of this machine, without containers."""
