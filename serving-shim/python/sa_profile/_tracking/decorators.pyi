from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from .._sa_profile import Span

_F = TypeVar("_F", bound=Callable[..., Any])

@overload
def track(
    function: _F,
    /,
    *,
    name: str | None = None,
    cat: str = "function",
    level: str = "e2e",
    inputs: bool = False,
    outputs: bool = False,
    metadata: Mapping[str, object] | None = None,
    max_chars: int = 256,
) -> _F: ...
@overload
def track(
    function: None = None,
    /,
    *,
    name: str | None = None,
    cat: str = "function",
    level: str = "e2e",
    inputs: bool = False,
    outputs: bool = False,
    metadata: Mapping[str, object] | None = None,
    max_chars: int = 256,
) -> Callable[[_F], _F]: ...
def decorate(span: Span, function: _F) -> _F: ...
