"""The kinds: Lockstep's own, and views of those of Kubernetes that it reads."""
