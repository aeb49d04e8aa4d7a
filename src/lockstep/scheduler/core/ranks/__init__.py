"""Which rank runs where: what ranks say to each other, and what that costs on a network.

``placement`` and what is above may import it; it imports ``model`` and below.
Start reading at ``collectives.py``, then ``rank_mapping.py``.
"""
