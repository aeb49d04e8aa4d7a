"""Datasets: declared once, cached on the nodes that read them."""
