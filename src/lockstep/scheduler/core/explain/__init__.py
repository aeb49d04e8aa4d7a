"""Why a workload waits, in words and numbers, and what would change it.

``runtime`` may import it; it imports ``reservations`` and below, never ``cycle``.
Start reading at ``diagnosis.py``; a new reason goes there or into ``placement/preconditions.py``.
"""
