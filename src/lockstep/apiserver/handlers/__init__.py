"""What each request does, a file a kind of request."""
