"""What the shell, the simulator and the commands use: clock, start estimates, status fields.

Nothing in the core may import it; it imports all of it.
Start reading at ``clock.py``, then ``start_estimates.py``.
"""
