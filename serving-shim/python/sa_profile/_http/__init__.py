"""HTTP requests of an engine's server, whichever engine it is.

`uvicorn` hooks the server, `asgi` its application and `endpoint` what FastAPI does there. `refusal` says why a request was refused, `stalls` when the event
loop did not run. `arrival` says when a request came, which only the kernel knows while the event loop is busy: it counts in `ticks`, and `awake` says since
when the event loop may have been awake. Above `_hooks`; engines are above this.
"""
