"""What the server does by itself, as others' controllers would through the API."""
