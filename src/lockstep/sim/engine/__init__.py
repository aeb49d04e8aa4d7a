"""The run itself: jobs and nodes through time, driven by the scheduler's core.

``sim.whatif`` may import it; it imports ``sim.result`` and ``sim.input``.
Start reading at ``simulation.py``.
"""
