"""Replaces SGLang's sockets between processes. A message is pickled when it is sent, and a receiver without messages gets `None`."""

import pickle
from collections import deque

_sockets = {}


class Socket:
    def __init__(self):
        self.messages = deque()

    def send(self, obj):
        self.messages.append(pickle.dumps(obj, pickle.HIGHEST_PROTOCOL))

    def recv(self):
        return pickle.loads(self.messages.popleft()) if self.messages else None

    def __len__(self):
        return len(self.messages)


def get_socket(name):
    """Returns the socket of this name. Both ends in a process share it."""
    if name not in _sockets:
        _sockets[name] = Socket()
    return _sockets[name]
