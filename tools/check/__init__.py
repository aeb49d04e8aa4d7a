"""`make check`: lint what changed and run the unit tests near it, within a minute."""
