"""Names of flows that the hooks of all processes must agree on."""

REQUEST = "request"  # links a request's events in all processes
