"""The data path: requests come in, wait where they must, and go to a replica."""
