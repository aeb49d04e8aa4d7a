"""Arrays, bit masks and other plain helpers that know nothing of scheduling.

Every package of the core may import it; it imports none of them.
Start reading anywhere: each file stands alone.
"""
