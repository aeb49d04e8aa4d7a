"""Usage records: who held which part of which GPU, from when until when, and for what."""
