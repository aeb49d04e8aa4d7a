"""Making room: whose place a unit may take, which places that frees, and keeping them for it."""
