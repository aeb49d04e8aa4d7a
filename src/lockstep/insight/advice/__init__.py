"""Why a job is slow, how to prove it, and what would be gained: functions of what probes saw.

:mod:`evidence` turns the sheets of ranks into parts of a step, :mod:`causes` names what can be
wrong, :mod:`judge` weighs it, :mod:`experiments` says which clone of the job proves it. Pure.
"""
