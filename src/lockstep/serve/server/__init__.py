"""Our own model server, for the stock runtimes: v1 and v2 over HTTP."""
