"""How much memory a run needs on each GPU."""
