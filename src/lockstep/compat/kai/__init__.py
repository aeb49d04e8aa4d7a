"""KAI's queues (``scheduling.run.ai``)."""
