"""The records that all others speak of: workload, pod shape, node table, topology, decisions.

Every package above ``resources`` may import it; it imports ``resources`` and ``util``.
Start reading at ``workload.py``, then ``node_table.py`` and ``decisions.py``.
"""
