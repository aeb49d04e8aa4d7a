"""The console: web pages that show jobs and the cluster, each user with the rights of their own."""
