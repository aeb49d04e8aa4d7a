"""What usage costs, by price lists."""
