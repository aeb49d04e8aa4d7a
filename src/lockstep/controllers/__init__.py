"""The process ``lockstep controllers``: every capability's controllers under one manager.

The command line alone imports it. Reading starts at :mod:`lockstep.controllers.main`.
"""
