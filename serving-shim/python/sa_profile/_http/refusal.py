"""Extracts the reason for a refusal from a server's answer."""

import json
import re

MAX_TEXT_LENGTH = 200
# In front of the rejected input, which some validators repeat in their message. It is user data and must not be recorded.
INPUT = re.compile(r"""[,{]?\s*(?:(['"])input\1\s*:|input_value\s*=)""")


def reason(text):
    """Returns args for the span of a refused request: type of the error, the invalid parameter, and the beginning of its message.

    `text` is a JSON object with `error`, like the OpenAI API's, or with FastAPI's `detail`.
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
    """Returns FastAPI's message: a text, or from a list of errors the location and message of the first. The list also contains the rejected input, which is left out."""
    if not isinstance(detail, list):
        return detail
    first = detail[0] if detail and isinstance(detail[0], dict) else {}
    location = first.get("loc")
    location = ".".join(map(str, location)) if isinstance(location, list) else ""
    return ": ".join(str(one) for one in (location, first.get("msg")) if one)


def _short(value):
    return INPUT.split(str(value), maxsplit=1)[0][:MAX_TEXT_LENGTH]
