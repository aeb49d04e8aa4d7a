"""Tools for the code that reads devices."""
