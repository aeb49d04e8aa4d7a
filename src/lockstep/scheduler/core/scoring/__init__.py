"""Which nodes pods may stand on, and which are better: vectors over the node table.

``packing``, ``state`` and what is above may import it; it imports ``model`` and below.
Start reading at ``feasibility.py``, then ``strategies.py``; a new rating of nodes goes there.
"""
