"""What a namespace may hold: resource quotas over all of it, limit ranges for each object in it."""
