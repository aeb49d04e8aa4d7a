"""KServe's kinds, as its users write them."""
