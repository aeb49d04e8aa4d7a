"""Talking to any API server: client, informer, reconciler, leader election, events."""
