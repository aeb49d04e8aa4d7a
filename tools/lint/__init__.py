"""Rules of this project that no linter of others knows; ``make lint`` runs them."""
