"""What benchmarks stand on; none of it measures by itself."""
