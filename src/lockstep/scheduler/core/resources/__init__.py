"""What pods ask for and nodes offer: columns, GPU shares, the devices inside one node.

Every package but ``util`` may import it; it imports ``util`` alone.
Start reading at ``columns.py``, then ``device_inventory.py``.
"""
