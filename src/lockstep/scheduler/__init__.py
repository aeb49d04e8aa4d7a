"""The gang scheduler: a pure core and the shell that watches and binds."""
