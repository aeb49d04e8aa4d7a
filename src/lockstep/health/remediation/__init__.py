"""Acts on findings: fences devices, taints nodes, ends the pods that have to go."""
