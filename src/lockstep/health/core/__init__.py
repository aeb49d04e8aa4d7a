"""Signatures, findings and verdicts, as functions without I/O and without a clock."""
