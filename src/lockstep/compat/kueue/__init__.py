"""Kueue's queues (``kueue.x-k8s.io``); its label on jobs is read by each dialect."""
