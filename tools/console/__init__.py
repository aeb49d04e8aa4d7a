"""The console's vendored libraries."""
