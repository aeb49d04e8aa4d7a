"""Argo Workflows: its objects as runs of ours, and how these are doing in its words."""
