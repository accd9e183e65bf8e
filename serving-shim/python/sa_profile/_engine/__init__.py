"""What every LLM engine has: requests with their moments, batches, outputs, counters, names of processes and profile routes.

The package of an engine maps the engine's own objects onto these modules. Nothing here knows an engine. docs/engines.md describes how to add one.
"""

REQUEST = "request"  # the flow that links a request's events in all processes
