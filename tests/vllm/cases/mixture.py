"""Sends one request of each kind, so that a trace contains everything that a server of this version can show."""

import asyncio
import http.client
import json

from client import load, random_prompt

TIMEOUT_S = 600  # the first request that samples may wait for a compiler
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def send(server, tokens):
    """Sends streamed requests, then one of each kind. Returns the statuses of the latter, by kind."""
    port = server.port
    for chat in (True, False):
        asyncio.run(load(server, 4, 8, tokens, chat=chat))
    repeated = random_prompt(150)  # several blocks, but not too long for the model
    found = {
        "first": complete(port, prompt=repeated),
        "prefix_hit": complete(port, prompt=repeated),
        "several_answers": complete(port, prompt="two of them", n=2, temperature=1),
        "structured": structured(port),
        "refused": complete(port, prompt="too much", max_tokens=100_000),
        "aborted": aborted(port),
    }
    # These are long, and together too large for a small cache.
    asyncio.run(load(server, 8, 8, 200, length=150))
    return found


def complete(port, **fields):
    """Requests a completion in one piece."""
    connection, answer = _post(port, "/v1/completions", **(dict(max_tokens=8, ignore_eos=True) | fields))
    answer.read()
    connection.close()
    return answer.status


def structured(port):
    """Requests a chat answer in JSON that follows a schema."""
    shape = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    messages = [dict(role="user", content="in JSON")]
    connection, answer = _post(port, "/v1/chat/completions", messages=messages, max_tokens=40, response_format=shape)
    answer.read()
    connection.close()
    return answer.status


def aborted(port):
    """Requests a stream and closes the connection after the first part."""
    connection, answer = _post(port, "/v1/completions", prompt="to be left", max_tokens=900, ignore_eos=True, stream=True)
    answer.read(16)
    connection.close()
    return answer.status


def _post(port, path, **body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    text = json.dumps(dict(model="model", temperature=0) | body)
    connection.request("POST", path, text, {"content-type": "application/json"})
    return connection, connection.getresponse()
