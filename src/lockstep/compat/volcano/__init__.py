"""Volcano's jobs (``batch.volcano.sh``) and queues (``scheduling.volcano.sh``)."""
