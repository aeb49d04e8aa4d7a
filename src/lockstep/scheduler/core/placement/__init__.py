"""Where a workload goes: its problem, the search over domains, admission within quota, what-if.

``preemption`` and what is above may import it; it imports ``packing``, ``state`` and below.
Start reading at ``admission.py``, then ``problem.py`` and ``search.py``.
"""
