"""One request and its answer."""


def looks_of_an_exchange():
    import asyncio

    from sa_profile._http import asgi

    looks = []
    asgi.AWAKE = type("Looks", (), {"most_ns": lambda self: looks.append(self)})()

    async def answer():
        scope = {}
        exchange = asgi.Exchange(1, scope)
        exchange.sent({"type": "http.response.start", "status": 200})
        exchange.sent({"type": "http.response.body", "body": b"a", "more_body": True})
        print(len(looks))
        exchange.sent({"type": "http.response.body", "body": b""})
        print(len(looks), scope[asgi.ANSWERED] == exchange.ended_ns)

    asyncio.run(answer())


def test_a_stretch_is_looked_at_when_the_next_request_may_come(record):
    assert record(looks_of_an_exchange).stdout == "0\n1 True\n"
