"""HTTP requests of an engine's server, whichever engine it is.

`uvicorn` hooks the server, `asgi` its application and `endpoint` what FastAPI does there. `refusal` says why a request was refused, `stalls` when the event
loop did not run. The extension records what every request needs: when it arrived (`message_begin`), and its exchange (`begin_exchange`). Above `_hooks`;
engines are above this.
"""
