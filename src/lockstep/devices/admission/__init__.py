"""The webhook that sends pods with shares of GPUs to our scheduler, in our own words."""
