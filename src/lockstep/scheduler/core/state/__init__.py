"""The cluster as events leave it: nodes, workloads, quota, nominations, budgets.

``placement`` and what is above may import it; it imports ``scoring``, ``quota`` and below.
Start reading at ``cluster.py``.
"""
