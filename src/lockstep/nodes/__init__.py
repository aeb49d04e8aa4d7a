"""Running pods without a kubelet: as processes of this machine, or simulated."""
