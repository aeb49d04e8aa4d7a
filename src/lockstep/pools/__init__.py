"""Node pools: nodes that exist only while gangs need them.

The process of controllers alone imports it. Reading starts at :mod:`lockstep.pools.core.plan`.
"""
