"""The gateway: Jupyter's REST and WebSocket protocol in front of kernels in pods."""
