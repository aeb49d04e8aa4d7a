"""`make release`: number a version, write its changelog, commit and tag."""
