"""Keys and certificates, and the files that hold them."""
