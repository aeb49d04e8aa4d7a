"""The data cache of a node: lists sources, fetches files, tells what is there."""
