"""Dialects: controllers that make our kinds of foreign ones, and write back their status.

:mod:`lockstep.compat` holds the translations, which are pure. Reading starts at
:mod:`lockstep.dialects.controller`.
"""
