"""Why a server refused a request, as its answer says."""

import json

LONGEST_BYTES = 16_384  # of an answer that is read
LONGEST_TEXT = 200
# Validators repeat in their message what they were sent, behind this word: that is the user's.
INPUT = "'input'"


class Refusal:
    """The answer to a request that was refused: an object with `error`, as of the OpenAI API, or with FastAPI's `detail`."""

    __slots__ = ("_text",)

    def __init__(self):
        self._text = b""

    def add(self, body):
        """A part of the answer goes out."""
        self._text += bytes(body or b"")[: LONGEST_BYTES - len(self._text)]

    def reason(self):
        """As args of the span: type of the error, the parameter that is wrong, and the first words of its message."""
        try:
            answer = json.loads(self._text)
        except ValueError:
            return {}
        error = answer.get("error", answer) if isinstance(answer, dict) else {}
        if not isinstance(error, dict):
            error = dict(message=error)
        names = dict(error="type", error_param="param", error_message="message")
        texts = {name: error.get(key) for name, key in names.items()}
        texts["error_message"] = texts["error_message"] or error.get("detail")
        return {name: _short(text) for name, text in texts.items() if text}


def _short(value):
    return str(value).partition(INPUT)[0][:LONGEST_TEXT]


def header(scope, name):
    """A header of the request by its name in lower case; `None` if it is not there."""
    for key, value in scope.get("headers") or ():
        if key == name:
            return value.decode("latin-1")[:LONGEST_TEXT]
    return None
