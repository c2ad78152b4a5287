"""A function travels as its source, or is refused with the name of what cannot travel."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import linecache
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_trainer.sdk.code.functions import LARGEST, command, program
from mpi_trainer.sdk.errors import NotShippable

RATE = 0.5

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)  # fmt: skip


def told(value: Any, more: Any = None, **others: Any) -> None:
    import json

    print(json.dumps([value, more, others], sort_keys=True))


def run(text: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", text]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def refusal(function: Callable[..., Any], *args: Any, **kwargs: Any) -> NotShippable:
    with pytest.raises(NotShippable) as caught:
        program(function, args, kwargs)
    return caught.value


def outcome(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """What the shipped program printed."""
    ended = run(program(function, args, kwargs))
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_function_is_called_with_its_arguments() -> None:
    assert json.loads(outcome(told, [1, 2.5], more={"a": None}, c="x")) == [
        [1, 2.5],
        {"a": None},
        {"c": "x"},
    ]


@settings(max_examples=25)
@given(plain)
def test_any_plain_argument_arrives_as_it_was(value: Any) -> None:
    printed, hook = io.StringIO(), sys.excepthook
    try:
        with contextlib.redirect_stdout(printed):
            exec(program(told, [value], {}), {"__name__": "__main__"})
    finally:
        sys.excepthook = hook
    assert json.loads(printed.getvalue())[0] == value


def test_exception_is_printed_once_and_told_to_whoever_waits_for_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """W-6: the agent in the pod waits for it; its place in the function comes along."""

    def fails() -> None:
        raise ValueError("bad learning rate")

    told: list[tuple[str, int]] = []

    def waits(kind: Any, error: BaseException, trace: Any) -> None:
        told.append((str(error), trace.tb_lineno))
        print("a second time", file=sys.stderr)

    hook = sys.excepthook
    sys.excepthook = waits
    try:
        try:
            exec(compile(program(fails, [], {}), "<string>", "exec"), {"__name__": "__main__"})
        except ValueError as error:
            sys.excepthook(ValueError, error, error.__traceback__)
    finally:
        sys.excepthook = hook
        linecache.cache.pop("<string>", None)
    printed = capfd.readouterr().err
    assert printed.count("ValueError: bad learning rate") == 1 and "second time" not in printed
    assert told == [("bad learning rate", 4)]


def test_text_that_a_shell_would_change_arrives_unchanged() -> None:
    text = "$HOME `date` $(id) \\n 'a' \"b\" %s {x}\n"
    assert json.loads(outcome(told, text))[0] == text


def test_nested_function_keeps_its_strings() -> None:
    def shout() -> None:
        print("""a
        b
c""")

    assert outcome(shout) == "a\n        b\nc"


def test_inner_functions_classes_and_comprehensions_are_taken_along() -> None:
    def work(n: int) -> None:
        import math as m

        class Box:
            size = 2
            double = size * 2

            def area(self) -> float:
                return m.sqrt(self.size)

        def down(k: int) -> int:
            return k and down(k - 1)

        global counted
        counted = [Box.double * i for i in range(n)]  # type: ignore[name-defined]
        print(counted, down(2), Box().area() > 1)  # type: ignore[name-defined]

    assert outcome(work, 3) == "[0, 4, 8] 0 True"


def test_annotations_need_nothing_on_the_workers() -> None:
    def work(path: Callable[..., Any] | None = None) -> Iterator[int] | None:
        found: Iterator[int] | None = None
        print(path)
        return found

    assert outcome(work) == "None"


def test_traceback_shows_the_function_s_own_lines() -> None:
    def broken() -> None:
        raise ValueError("no data")

    ended = run(program(broken, (), {}))
    assert ended.returncode == 1
    assert 'raise ValueError("no data")' in ended.stderr
    assert "shipping" not in ended.stderr and "_json" not in ended.stderr


def test_variable_of_the_function_around_is_named_with_its_line() -> None:
    rate = 0.1

    def work() -> None:
        print("x")
        print(rate)

    error = refusal(work)
    assert error.problem.startswith("`work` uses `rate` in line 3 (`print(rate)`)")
    assert "kwargs={'rate': ...}" in error.hint


def test_variable_of_the_module_is_named_with_its_line() -> None:
    def work() -> list[float]:
        return [i * RATE for i in range(2)]

    assert "`RATE` in line 2" in refusal(work).problem


def test_variable_in_a_default_is_found() -> None:
    def work(rate: float = RATE) -> None:
        print(rate)

    assert "`RATE` in line 1" in refusal(work).problem


def test_import_outside_is_answered_with_the_line_to_write() -> None:
    def work() -> None:
        json.dumps(1)
        print(functools)

    error = refusal(work)
    assert "`json`" in error.problem
    assert "`import json`" in error.hint


def test_other_function_outside_is_named() -> None:
    def work() -> None:
        told(1)

    assert "`told`" in refusal(work).problem


def test_name_that_exists_nowhere_is_named() -> None:
    def work() -> None:
        print(nothing_of_the_kind)  # type: ignore[name-defined]  # noqa: F821

    assert "defined nowhere" in refusal(work).problem


def test_class_body_does_not_lend_its_names_to_methods() -> None:
    def work() -> None:
        class Box:
            size = 2

            def area(self) -> int:
                return size  # type: ignore[name-defined,no-any-return]  # noqa: F821

        print(Box)

    assert "`size` in line 6" in refusal(work).problem


def test_decorated_function_is_refused() -> None:
    @functools.cache
    def kept() -> None: ...

    @functools.wraps(told)
    def wrapped() -> None: ...

    assert "lru_cache" in refusal(kept).problem or "decorator" in refusal(kept).problem
    assert "decorator `@functools.wraps(told)`" in refusal(_plain(wrapped)).problem


def _plain(function: Any) -> Any:
    del function.__wrapped__
    return function


@pytest.mark.parametrize("thing", [lambda: 1, print, str, functools.partial(told, 1), [].append])
def test_what_is_no_plain_function_is_refused(thing: Any) -> None:
    assert "only a plain function" in refusal(thing).problem


def test_coroutines_and_generators_are_refused() -> None:
    async def later() -> None: ...

    def many() -> Iterator[int]:
        yield 1

    assert "never awaited" in refusal(later).problem
    assert "`yield`" in refusal(many).problem


def test_function_without_source_is_refused() -> None:
    made: dict[str, Any] = {}
    exec("def lost(): pass", made)
    assert "source of `lost` cannot be found" in refusal(made["lost"]).problem


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({1: 2}, "args[0] has the key 1"),
        ([{"a": {1, 2}}], "args[0][0]['a'] is a set"),
        (float("nan"), "args[0] is nan"),
        (b"x", "args[0] is a bytes"),
        (object(), "args[0] is a object"),
    ],
)
def test_argument_that_json_would_change_is_named(value: Any, path: str) -> None:
    assert path in refusal(told, value).problem


def test_arguments_that_do_not_fit_are_refused_before_anything_runs() -> None:
    assert "missing a required argument: 'value'" in refusal(told).problem
    assert "kwargs['z'] is a set" in refusal(told, 1, z={1}).problem


def test_program_larger_than_an_argument_may_be_is_refused() -> None:
    assert "at most 100 KiB" in refusal(told, "x" * LARGEST).problem


def test_one_rank_s_exception_ends_the_others() -> None:
    assert command("text", "python") == ("python", "-m", "mpi4py", "-c", "text")


def test_refusal_is_a_value_error_that_shows_its_hint() -> None:
    error = refusal(told)
    assert isinstance(error, ValueError)
    assert error.__notes__ == [f"hint: {error.hint}"]
