"""Synchronous methods made from asynchronous ones: written once, with one signature and one text.

`blocking` and `iterating` take a method of an Async class, whose `self` may be any object of the
common base, and give a method that does the same on the background loop and waits. The type
checker sees the parameters as they are; so does a notebook's help.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from mpi_trainer.sdk import event_loop

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)


class Method(Protocol, Generic[P, R_co]):
    """A method as the type checker has to see it: `self` is filled in by access."""

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[Concatenate[Any, P], R_co]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, R_co]: ...


def blocking(method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]]) -> Method[P, R]:
    """The method, waited for."""

    @functools.wraps(method)
    def wait(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return event_loop.run(method(self, *args, **kwargs))

    made: Method[P, R] = _as_method(wait)
    return made


def converting(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, Any]], into: Callable[[Any], R]
) -> Method[P, R]:
    """The method, waited for, and its result made into what synchronous callers use."""

    @functools.wraps(method)
    def wait(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return into(event_loop.run(method(self, *args, **kwargs)))

    made: Method[P, R] = _as_method(wait, getattr(into, "__self__", into).__name__)
    return made


def iterating(method: Callable[Concatenate[S, P], AsyncIterator[R]]) -> Method[P, Iterator[R]]:
    """The method as an ordinary iterator."""

    @functools.wraps(method)
    def wait(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        return event_loop.iterate(method(self, *args, **kwargs))

    made: Method[P, Iterator[R]] = _as_method(wait, _iterator(method))
    return made


def _iterator(method: Callable[..., Any]) -> str:
    returned = str(inspect.signature(method).return_annotation)
    return returned.removeprefix("Async")


def _as_method(wait: Callable[..., Any], returns: str | None = None) -> Any:
    """The wrapper with the signature of what it wraps, `self` as usual and not asynchronous."""
    signature = inspect.signature(wait)
    first, *rest = signature.parameters.values()
    parameters = [first.replace(annotation=inspect.Parameter.empty), *rest]
    signature = signature.replace(parameters=parameters)
    if returns is not None:
        signature = signature.replace(return_annotation=returns)
    cast("Any", wait).__signature__ = signature
    cast("Any", wait).__annotations__ = {
        **{p.name: p.annotation for p in rest if p.annotation is not p.empty},
        "return": signature.return_annotation,
    }
    return wait
