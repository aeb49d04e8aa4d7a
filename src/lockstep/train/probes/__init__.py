"""Probes in the ranks: where the time of a step goes, without a change of the user's code.

``train/site/sitecustomize.py`` loads this package from its folder into any Python from 3.9 on, so
its modules name each other relatively and use the standard library alone; torch is met when the
user imports it. What was measured lies in files of ``LOCKSTEP_PROBES``, which the launcher reports.
"""
