"""Queues: who holds how much, who may have more, and whose turn it is."""
