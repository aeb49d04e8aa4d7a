"""Notebooks, kernels in pods of their own, and parking: what idles gives its GPU back."""
