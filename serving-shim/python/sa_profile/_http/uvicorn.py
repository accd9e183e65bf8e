"""Hooks uvicorn, the HTTP server of most engines: wraps its application, and records when a request arrived, which is before the event loop handles it."""

from .. import set_process_name
from .._sa_profile import message_begin
from .._hooks.chain import chain
from .._hooks.warnings import warn_once
from .asgi import HttpSpans


class ConfigHook:
    """Hooks the class of `uvicorn.config`, whose application is known once it is loaded."""

    def __init__(self, process_name):
        self._process_name = process_name  # a function, because the process may get its title later

    def hook(self, module):
        config = getattr(module, "Config", None)
        if config is None:
            warn_once("this uvicorn has no Config: HTTP spans are missing")
        else:
            chain(config, "load", self.load)

    def load(self, config, *_args, **_kwargs):
        """Wraps the server's application after it is loaded. From then on the process serves, so it is also named."""

        def leave(_result, error):
            app = getattr(config, "loaded_app", None)
            if error is None and app is not None and not isinstance(app, HttpSpans):
                config.loaded_app = HttpSpans(app, holds_spans=False)
                set_process_name(self._process_name())

        return leave


def hook_protocol(module):
    """Hooks the class of `uvicorn.protocols.http.httptools_impl`, which reads requests before the event loop handles them."""
    protocol = getattr(module, "HttpToolsProtocol", None)
    if protocol is not None:
        chain(protocol, "on_message_begin", message_begin)
