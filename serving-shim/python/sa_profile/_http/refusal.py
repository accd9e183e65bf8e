"""Why a server refused a request, as its answer says."""

import json
import re

LONGEST_TEXT = 200
# Validators repeat in their message what they were sent, behind one of these: that is the user's.
INPUT = re.compile(r"""[,{]?\s*(?:(['"])input\1\s*:|input_value\s*=)""")


def reason(text):
    """Returns args of the span of a request that was refused: type of the error, the parameter that is wrong, and the first words of its message.

    `text` is an object with `error`, as of the OpenAI API, or with FastAPI's `detail`.
    """
    try:
        answer = json.loads(text)
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
