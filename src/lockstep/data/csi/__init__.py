"""The CSI driver of a node: datasets as volumes of pods."""
