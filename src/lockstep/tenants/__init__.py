"""Teams: namespaces, rights, queue and quotas from one object.

The process of controllers alone imports it. Reading starts at :mod:`lockstep.tenants.core.plan`.
"""
