"""Which members of several shapes go to which nodes of one domain, and on which devices.

``placement`` and what is above may import it; it imports ``scoring`` and below, never ``state``.
Start reading at ``packing.py``, then ``solver.py``.
"""
