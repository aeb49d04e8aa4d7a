"""Talking to any API server: client, informer, leader election, events."""
