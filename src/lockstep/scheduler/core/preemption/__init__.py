"""Whose place a workload may take: victims, plans, and waiting until they have left.

``reservations``, ``defrag`` and what is above may import it; it imports ``placement`` and below.
Start reading at ``preemptor.py``, then ``planner.py``.
"""
