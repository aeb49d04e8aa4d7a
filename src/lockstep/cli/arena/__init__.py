"""``lockstep arena``: Arena's command line, over Lockstep's own objects."""
