"""The scheduling cycle: what waits, in which order, and what becomes of each workload.

``runtime`` may import it; it imports all below but ``explain``.
Start reading at ``decider.py``.
"""
