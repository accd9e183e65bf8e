"""Wrappers for tracked generators. Yielded items, sent values and exceptions pass through unchanged."""

from ._likeness import like

# The flag that `types.coroutine` sets on generators that can be awaited.
_ITERABLE_COROUTINE = 0x100


def wrap_generator(function, tracked):
    """Wraps a generator function so that each generator has a span."""

    @like(function)
    def generator(*args, **kwargs):
        inner = function(*args, **kwargs)
        items = _Items(tracked, args, kwargs)
        try:
            item = next(inner)
            while True:
                items.add(item)
                try:
                    sent = yield item
                except GeneratorExit:
                    items.close()
                    inner.close()
                    raise
                except BaseException as error:
                    item = inner.throw(error)
                else:
                    item = next(inner) if sent is None else inner.send(sent)
        except StopIteration as stop:
            items.end()
            return stop.value
        except BaseException as error:
            items.fail(error)
            raise

    code = getattr(function, "__code__", generator.__code__)
    generator.__code__ = generator.__code__.replace(co_flags=generator.__code__.co_flags | code.co_flags & _ITERABLE_COROUTINE)
    return generator


def wrap_async_generator(function, tracked):
    """Wraps an async generator function so that each generator has a span."""

    @like(function)
    async def generator(*args, **kwargs):
        inner = function(*args, **kwargs)
        items = _Items(tracked, args, kwargs)
        try:
            item = await anext(inner)
            while True:
                items.add(item)
                try:
                    sent = yield item
                except GeneratorExit:
                    items.close()
                    await inner.aclose()
                    raise
                except BaseException as error:
                    item = await inner.athrow(error)
                else:
                    item = await (anext(inner) if sent is None else inner.asend(sent))
        except StopAsyncIteration:
            items.end()
        except BaseException as error:
            items.fail(error)
            raise

    return generator


class _Items:
    """The span of one generator, and the number of items it has yielded."""

    def __init__(self, tracked, args, kwargs):
        self._tracked = tracked
        self._span = tracked.async_span(args, kwargs)
        self._is_recording = self._span.is_recording()
        self._count = 0

    def add(self, item):
        if self._is_recording:
            more = {"item": self._tracked.output(item)} if self._tracked.outputs else {}
            self._span.instant(f"{self._tracked.name}.item", index=self._count, **more)
        self._count += 1

    def end(self, **args):
        self._span.end(items=self._count, **args)

    def close(self):
        """Ends the span of a generator that its consumer closed early."""
        self.end(closed=True)

    def fail(self, error):
        self.end(error=type(error).__name__)
