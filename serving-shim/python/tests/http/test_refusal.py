"""Why a request was refused."""

import json

import pytest

from sa_profile._http.refusal import reason as reason_of


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            {"error": {"message": "max_tokens is too large: 5000", "type": "BadRequestError", "param": "max_tokens", "code": 400}},
            dict(error="BadRequestError", error_param="max_tokens", error_message="max_tokens is too large: 5000"),
        ),
        ({"object": "error", "message": "no such model", "type": "NotFoundError", "param": None}, dict(error="NotFoundError", error_message="no such model")),
        ({"detail": "Not Found"}, dict(error_message="Not Found")),
        ({"error": "Unauthorized"}, dict(error_message="Unauthorized")),
        ({"error": {"message": "[{'type': 'missing', 'msg': 'Field required', 'input': {'a': 'secret'}}]"}}, dict(error_message="[{'type': 'missing', 'msg': 'Field required'")),
        (
            {"error": {"message": "[{'type': 'missing', 'loc': ('body', 'input'), 'msg': 'Field required', 'input': {'a': 'secret'}}]"}},
            dict(error_message="[{'type': 'missing', 'loc': ('body', 'input'), 'msg': 'Field required'"),
        ),
        ({"error": {"message": "[{'input': 'secret', 'msg': 'Field required'}]"}}, dict(error_message="[")),
        ({"error": {"message": '[{"msg": "Field required", "input": "secret"}]'}}, dict(error_message='[{"msg": "Field required"')),
        (
            {"error": {"message": "1 validation error\nn\n  Input should be a valid integer [type=int_type, input_value='secret', input_type=str]"}},
            dict(error_message="1 validation error\nn\n  Input should be a valid integer [type=int_type"),
        ),
        (
            {"detail": [{"type": "missing", "loc": ["body", "input"], "msg": "Field required", "input": {"a": "secret"}}, {"msg": "another"}]},
            dict(error_message="body.input: Field required"),
        ),
        ({"detail": [{"msg": "Field required", "input": "secret"}]}, dict(error_message="Field required")),
        ({"detail": [{"input": "secret"}]}, {}),
        ({"detail": ["secret"]}, {}),
        ({"detail": []}, {}),
        ({"error": {"message": "x" * 1000}}, dict(error_message="x" * 200)),
        (["odd"], {}),
        ({"error": None}, {}),
    ],
)
def test_the_reason_is_taken_from_the_answer(answer, reason):
    assert reason_of(json.dumps(answer).encode()) == reason


def test_an_answer_other_than_json_gives_no_reason():
    for text in (b"Internal Server Error", b"", b'{"error": "xxx', b"\xff"):
        assert reason_of(text) == {}
