"""What a month's GPU time went into, what was wasted, and what to do about it."""
