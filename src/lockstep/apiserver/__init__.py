"""The embedded API server: the Kubernetes REST API over SQLite."""
