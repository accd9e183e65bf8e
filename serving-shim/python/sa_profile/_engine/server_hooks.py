"""Hooks for what servers of all engines use: the interpreter, compilers and the HTTP server."""

from .._hooks import compilation, garbage
from .._hooks.imports import when_imported
from .._http import endpoint, uvicorn


def watch(server_name):
    """Hooks modules when they are imported, and watches garbage collections. `server_name` returns the name for a process that serves HTTP."""
    garbage.watch()
    when_imported("torch._dynamo.callback", compilation.hook)
    when_imported("triton.compiler", compilation.hook_triton)
    when_imported("fastapi.routing", endpoint.hook_routing)
    when_imported("starlette.requests", endpoint.hook_requests)
    when_imported("uvicorn.config", uvicorn.ConfigHook(server_name).hook)
    when_imported("uvicorn.protocols.http.httptools_impl", uvicorn.hook_protocol)
