"""When a workload that does not fit starts at the latest, and what is held for it until then.

``cycle``, ``explain`` and ``runtime`` may import it; it imports ``preemption`` and below.
Start reading at ``book.py``, then ``bypass.py``.
"""
