"""Who makes the nodes of pools: one file a provider, all with the same three calls.

Read ``contract.py`` first. A new provider goes into ``registry.py`` and into ``PoolProvider``.
"""
