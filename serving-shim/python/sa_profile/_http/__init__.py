"""Records HTTP requests of an engine's server, for any engine.

`uvicorn` hooks the server, `asgi` its application and `endpoint` what FastAPI does there. `refusal` finds out why a request was refused, and `stalls` when the event
loop did not run. The extension does the work that every request needs: its arrival time (`message_begin`), and its exchange (`begin_exchange`). This layer is above
`_hooks` and below the engines.
"""
