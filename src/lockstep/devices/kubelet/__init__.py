"""What the agent says to a kubelet and hears from it: device plugin, PodResources."""
