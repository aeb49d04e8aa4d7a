"""What a simulation is given: the cluster, the jobs, the faults.

All of ``sim`` may import it; it imports the scheduler's core.
Start reading at ``world.py``, then ``jobs.py``.
"""
