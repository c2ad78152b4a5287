"""A Python function as a program for every rank: its source, never a pickle.

What travels is the function's text and its arguments as JSON, so what runs can be read, and runs
under another Python as well. Guarantee: a function that needs anything else is refused here, with
the variable and the line, and not by a NameError on some worker. Danger: names that are looked up
by other means (`globals()["x"]`, `eval`) are not seen.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

from mpi_trainer.api.kinds.runtime import MPI, TORCH
from mpi_trainer.sdk.errors import NotShippable

# Linux takes at most 128 KiB in one argument of a program.
LARGEST = 100 * 1024
_KNOWN = frozenset(dir(builtins)) | {"__name__", "__doc__", "__builtins__"}
_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_STORES = frozenset({"STORE_GLOBAL", "STORE_NAME"})
_HEADER = "from __future__ import annotations\n"
# Text inside the function stays as it is: taking the indentation away would change its strings.
_INDENTED = "if True:\n"

# Calls the function; a traceback shows its own lines, not those of whatever started it. Whoever
# else waits for an exception, such as the agent in the pod, hears of it, and prints it no second
# time.
_TAIL = """

def _show_traceback(told, kind, error, trace):
    import contextlib, linecache, os, sys, traceback
    text = sys.orig_argv[-1]
    linecache.cache["<string>"] = (len(text), None, text.splitlines(True), "<string>")
    while trace.tb_next and trace.tb_frame.f_code.co_filename != "<string>":
        trace = trace.tb_next
    trace = trace.tb_next or trace
    traceback.print_exception(kind, error, trace)
    if told is not sys.__excepthook__:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            told(kind, error, trace)

if __name__ == "__main__":
    import functools as _functools, json as _json, sys as _sys
    _sys.excepthook = _functools.partial(_show_traceback, _sys.excepthook)
    {name}(*_json.loads({args!r}), **_json.loads({kwargs!r}))
"""


def program(
    function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> str:
    """The text of a Python program that calls `function` with these arguments."""
    source = _source(function)
    head = f"{_HEADER}{_INDENTED if source[:1].isspace() else ''}"
    code = compile(f"{head}{source}", "<shipped>", "exec", dont_inherit=True)
    for name, found in _unknown(code):
        line = found - head.count("\n")
        text = source.splitlines()[line - 1].strip()
        raise _names_refused(function, name, f"line {line} (`{text}`)")
    _check_arguments(function, args, kwargs)
    text = f"{head}{source}" + _TAIL.format(
        name=function.__name__, args=json.dumps([*args]), kwargs=json.dumps({**kwargs})
    )
    if len(text.encode()) > LARGEST:
        raise NotShippable(
            f"`{function.__name__}` and its arguments are {len(text.encode()) // 1024} KiB of text,"
            f" and at most {LARGEST // 1024} KiB travel with a job",
            "Put data into a file or volume, and give the function its path.",
        )
    return text


def command(text: str, python: str, framework: str = MPI) -> tuple[str, ...]:
    """Runs the program, as the ranks of this framework are started. Under `-m mpi4py`, one rank's
    exception ends the others too."""
    if framework == TORCH:
        return ("torchrun", "--no-python", python, "-c", text)
    return (python, "-m", "mpi4py", "-c", text) if framework == MPI else (python, "-c", text)


def _source(function: Callable[..., object]) -> str:
    """The function's own text, dedented: one plain `def`."""
    name = getattr(function, "__name__", repr(function))
    if not isinstance(function, FunctionType) or name == "<lambda>":
        kind = "a lambda" if name == "<lambda>" else f"a {type(function).__name__}"
        raise NotShippable(
            f"only a plain function can be sent to the ranks, and this is {kind}",
            "Write it as `def train(...):` at the top of a file or cell.",
        )
    try:
        source = inspect.getsource(function)
        block = ast.parse(source if not source[:1].isspace() else f"{_INDENTED}{source}").body[0]
        tree = block.body[0] if isinstance(block, ast.If) else block
    except (OSError, SyntaxError) as error:
        raise NotShippable(
            f"the source of `{name}` cannot be found",
            "Define the function in a file or a notebook cell.",
        ) from error
    if not isinstance(tree, ast.FunctionDef):
        raise NotShippable(
            f"`{name}` is not a plain function: an `async def` would be called and never awaited",
            "Write it as `def`, and call `asyncio.run(...)` inside.",
        )
    if inspect.isgeneratorfunction(function):
        raise NotShippable(
            f"`{name}` has a `yield`, so calling it would run none of it",
            "Print or log values instead of yielding them.",
        )
    if tree.decorator_list:
        decorator = ast.unparse(tree.decorator_list[0])
        raise NotShippable(
            f"`{name}` has the decorator `@{decorator}`, which cannot be sent along",
            "Remove the decorator, or apply it inside the function.",
        )
    return source if source.endswith("\n") else f"{source}\n"


def _unknown(code: CodeType) -> Iterator[tuple[str, int]]:
    """Names that the program reads and nothing in it defines, each with its line."""
    everything = [*_within(code)]
    made = {i.argval for c in everything for i in _steps(c, _STORES) if _shared(c, i)}
    for each in everything:
        own = {i.argval for i in _steps(each, frozenset({"STORE_NAME"}))}
        for step in _steps(each, _LOADS):
            known = own if step.opname != "LOAD_GLOBAL" else set()
            if step.argval not in _KNOWN | made | known:
                line = step.positions.lineno if step.positions else None
                yield step.argval, line or each.co_firstlineno


def _within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _within(constant)


def _steps(code: CodeType, names: frozenset[str]) -> Iterator[dis.Instruction]:
    return (step for step in dis.get_instructions(code) if step.opname in names)


def _shared(code: CodeType, step: dis.Instruction) -> bool:
    """Whether the store makes a global name; a class body's own names are seen by it alone."""
    return step.opname == "STORE_GLOBAL" or code.co_name == "<module>"


def _names_refused(function: Callable[..., object], name: str, where: str) -> NotShippable:
    assert isinstance(function, FunctionType)
    used = f"`{function.__name__}` uses `{name}` in {where}"
    if name in function.__code__.co_freevars:
        return NotShippable(
            f"{used}, a variable of the function around it, which does not exist on the workers",
            f"Give `{name}` as an argument: `args=[...]` or `kwargs={{{name!r}: ...}}`.",
        )
    value = function.__globals__.get(name)
    if isinstance(value, ModuleType):
        module = value.__name__
        line = f"import {module}" if module == name else f"import {module} as {name}"
        return NotShippable(
            f"{used}, which is imported outside of it", f"Write `{line}` inside the function."
        )
    if name not in function.__globals__:
        return NotShippable(f"{used}, which is defined nowhere", "Define it inside the function.")
    if isinstance(value, FunctionType | type):
        made = f"from {value.__module__} import {name}"
        return NotShippable(
            f"{used}, which is defined outside of it",
            f"Define it inside the function, or write `{made}` there if it is installed in the "
            "image.",
        )
    return NotShippable(
        f"{used}, a variable outside of it, which does not exist on the workers",
        f"Give `{name}` as an argument, or define it inside the function.",
    )


def _check_arguments(
    function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> None:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise NotShippable(
            f"the arguments do not fit `{function.__name__}`: {error}",
            "Correct args and kwargs.",
        ) from error
    for number, value in enumerate(args):
        _check(value, f"args[{number}]")
    for name, value in kwargs.items():
        _check(value, f"kwargs[{name!r}]")


def _check(value: Any, path: str) -> None:
    """Refuses what JSON cannot carry, or would silently make into something else."""
    if isinstance(value, Mapping) and type(value) is dict:
        for key, item in value.items():
            if not isinstance(key, str):
                problem = f"has the key {key!r}, and JSON has only strings as keys"
                raise _argument_refused(path, problem)
            _check(item, f"{path}[{key!r}]")
    elif type(value) in (list, tuple):
        for number, item in enumerate(value):
            _check(item, f"{path}[{number}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise _argument_refused(path, f"is {value}, which JSON does not have")
    elif value is not None and not isinstance(value, bool | int | float | str):
        raise _argument_refused(path, f"is a {type(value).__name__}, which JSON does not have")


def _argument_refused(path: str, problem: str) -> NotShippable:
    return NotShippable(
        f"the argument {path} {problem}",
        "Arguments are numbers, texts, booleans, None, and lists and dicts of them.",
    )
