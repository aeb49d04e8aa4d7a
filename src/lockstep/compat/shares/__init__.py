"""Shares of GPUs in other systems' words: pods in, the same pods with our own resources out."""
