"""Who used what, what it cost, and what would fit."""
