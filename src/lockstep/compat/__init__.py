"""Dialects of other systems, translated into Lockstep's own kinds at the door."""
