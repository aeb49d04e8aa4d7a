"""Nodes that exist in the API server only, and pods that do nothing but take their time."""
