"""Moves of running gangs that let another one fit: candidates, plan, and how far it is.

``cycle`` and ``runtime`` may import it; it imports ``preemption`` and below.
Start reading at ``defragmenter.py``, then ``planner.py``.
"""
