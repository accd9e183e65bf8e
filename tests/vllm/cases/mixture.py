"""One request of each kind, so that a trace has all that a server of this version can show."""

import asyncio
import http.client
import json

from client import load, prompt_of

TIMEOUT_S = 600  # the first request that samples may wait for a compiler
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def send(port, tokens):
    """Streamed ones, then one of each kind by itself; the statuses of those, by kind."""
    for chat in (True, False):
        asyncio.run(load(port, 4, 8, tokens, chat=chat))
    repeated = prompt_of(150)  # some blocks, and not too long for the model
    found = {
        "first": complete(port, prompt=repeated),
        "prefix_hit": complete(port, prompt=repeated),
        "several_answers": complete(port, prompt="two of them", n=2, temperature=1),
        "structured": structured(port),
        "refused": complete(port, prompt="too much", max_tokens=100_000),
        "aborted": aborted(port),
    }
    # Long ones, so many at once that a small cache does not hold them.
    asyncio.run(load(port, 8, 8, 200, length=150))
    return found


def complete(port, **asked):
    """A completion in one piece."""
    connection, answer = _post(port, "/v1/completions", **(dict(max_tokens=8, ignore_eos=True) | asked))
    answer.read()
    connection.close()
    return answer.status


def structured(port):
    """A chat that must answer in JSON of a schema."""
    shape = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    messages = [dict(role="user", content="in JSON")]
    connection, answer = _post(port, "/v1/chat/completions", messages=messages, max_tokens=40, response_format=shape)
    answer.read()
    connection.close()
    return answer.status


def aborted(port):
    """A stream that its client leaves after the first part."""
    connection, answer = _post(port, "/v1/completions", prompt="to be left", max_tokens=900, ignore_eos=True, stream=True)
    answer.read(16)
    connection.close()
    return answer.status


def _post(port, path, **body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    text = json.dumps(dict(model="model", temperature=0) | body)
    connection.request("POST", path, text, {"content-type": "application/json"})
    return connection, connection.getresponse()
