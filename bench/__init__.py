"""Benchmarks: each figure beside its bar or its peer."""
