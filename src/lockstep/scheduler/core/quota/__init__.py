"""What queues may use and what they use: accounts, guarantees, limits, past use.

``state`` and what is above it may import it; it imports ``model`` and below.
Start reading at ``account.py``, then ``ledger.py``.
"""
