"""elastic-jupyter-operator's kinds: notebooks, their gateway and its kernels."""
