"""The training network: its NICs, their addresses, and the proof that all pairs can talk."""
