from starlette.requests import Request


async def solve_dependencies(request, body):
    return dict(request=body)


async def run_endpoint_function(function, values):
    return await function(**values)


def get_request_handler(function):
    async def app(receive):
        request = Request(receive)
        await request.body()
        values = await solve_dependencies(request, await request.json())
        return await run_endpoint_function(function, values)

    return app
