"""Why a server refused a request, as its answer says."""

import json
import re

LONGEST_BYTES = 16_384  # of an answer that is read
LONGEST_TEXT = 200
# Validators repeat in their message what they were sent, behind one of these: that is the user's.
INPUT = re.compile(r"""[,{]?\s*(?:(['"])input\1\s*:|input_value\s*=)""")


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
        texts["error_message"] = texts["error_message"] or _detail(error.get("detail"))
        return {name: _short(text) for name, text in texts.items() if text}


def _detail(detail):
    """FastAPI's own: a text, or a list of what is wrong with the request, each with what was sent. Of that the first one's place and message."""
    if not isinstance(detail, list):
        return detail
    first = detail[0] if detail and isinstance(detail[0], dict) else {}
    place = first.get("loc")
    place = ".".join(map(str, place)) if isinstance(place, list) else ""
    return ": ".join(str(one) for one in (place, first.get("msg")) if one)


def _short(value):
    return INPUT.split(str(value), maxsplit=1)[0][:LONGEST_TEXT]


def header(scope, name):
    """A header of the request by its name in lower case; `None` if it is not there."""
    for key, value in scope.get("headers") or ():
        if key == name:
            return value.decode("latin-1")[:LONGEST_TEXT]
    return None
