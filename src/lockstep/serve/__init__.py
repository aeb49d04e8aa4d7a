"""Inference services: their replicas, the routes to them, how many there are."""
