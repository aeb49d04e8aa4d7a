"""Datasets as a file system: what pods read while a dataset is not whole on their node."""
