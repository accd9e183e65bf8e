"""Async spans and requests, which begin in one place and end in another."""


def test_a_span_ends_in_another_thread(program):
    trace = program.record(
        """
        import threading
        span = sa_profile.async_span("work", cat="c", lane="my lane", a=1)
        assert span.is_recording()
        span.arg(b=2)
        thread = threading.Thread(target=lambda: span.end(c=3))
        thread.start()
        thread.join()
        span.end(d=4)
        with sa_profile.async_span("managed", lane="my lane"):
            pass
        """
    )
    assert trace.args("work") == {"a": 1, "b": 2, "c": 3} and trace.span("work")["cat"] == "c"
    assert trace.track_name(trace.span("work")) == trace.track_name(trace.span("managed")) == "my lane (async)"


def test_a_request_carries_its_id(program):
    trace = program.record(
        """
        with sa_profile.request("req-1", prompt_tokens=5) as request:
            assert request.request_id == "req-1"
            request.instant("first_token", n=1)
            request.end(reason="stop")
        """
    )
    assert trace.args("request") == {"request_id": "req-1", "prompt_tokens": 5, "reason": "stop"}
    (instant,) = trace.instants("first_token")
    assert instant["args"] == {"request_id": "req-1", "n": 1} and instant["cat"] == "request"
    request = trace.span("request")
    assert (instant["pid"], instant["tid"]) == (request["pid"], request["tid"])
