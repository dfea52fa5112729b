# SPDX-License-Identifier: Apache-2.0
"""The part of pytest that tests/python/test_cuda.py needs, for machines without pytest.

usage: python -m pytest [FLAG ...] --junitxml=FILE TEST.py

Knows parametrize, skipif, other marks (ignored), fixture record_property, and raises. Flags are ignored. Prints a line
for each test, and writes the results as pytest does.

Exit status: 0 no test failed, 1 a test failed or the file cannot be imported.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

__version__ = "of this repository"


class _Mark:
    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return _Applied(self.name, arguments, named)


class _Applied:
    """A mark with its arguments, which decorates a test or is the `pytestmark` of a file."""

    def __init__(self, name: str, arguments: tuple, named: dict) -> None:
        self.name, self.arguments, self.named = name, arguments, named

    def __call__(self, test: Callable) -> Callable:
        test.__dict__.setdefault("marks", []).append(self)
        return test


class _Marks:
    def __getattr__(self, name: str) -> _Mark:
        return _Mark(name)


mark = _Marks()


def fixture(*arguments: Any, **_: Any) -> Any:
    return arguments[0] if arguments and callable(arguments[0]) else lambda test: test


@contextlib.contextmanager
def raises(kind: type[BaseException], **_: Any) -> Iterator[None]:
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")


def _cases_of(test: Callable) -> Iterator[tuple[str, dict[str, Any]]]:
    """Identification and arguments of each case."""
    axes = []
    for each in getattr(test, "marks", []):
        if each.name != "parametrize":
            continue
        names, rows = each.arguments
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        rows = [row if len(names) > 1 else (row,) for row in rows]
        labels = each.named.get("ids") or [
            "-".join(getattr(value, "__name__", str(value)) for value in row) for row in rows
        ]
        axes.append([(label, dict(zip(names, row))) for label, row in zip(labels, rows)])
    for combination in itertools.product(*axes):
        arguments: dict[str, Any] = {}
        for _, part in combination:
            arguments.update(part)
        label = "-".join(label for label, _ in combination)
        yield (f"{test.__name__}[{label}]" if label else test.__name__), arguments


def _reason_to_skip(marks: list[_Applied]) -> str:
    for each in marks:
        if each.name == "skipif" and each.arguments[0]:
            return each.named.get("reason", "skipped")
    return ""


def _run(test: Callable, arguments: dict[str, Any]) -> str:
    """Returns an empty text, or the failure."""
    if "record_property" in inspect.signature(test).parameters:
        arguments = {**arguments, "record_property": lambda name, value: None}
    try:
        test(**arguments)
        return ""
    except Exception:
        return traceback.format_exc()


def _run_file(path: Path, suite: ElementTree.Element) -> bool:
    sys.path.insert(0, str(path.parent))
    module = importlib.import_module(path.stem)
    common = getattr(module, "pytestmark", [])
    common = common if isinstance(common, list) else [common]
    passed = True
    for test in [each for name, each in vars(module).items() if name.startswith("test_") and callable(each)]:
        reason = _reason_to_skip([*common, *getattr(test, "marks", [])])
        for name, arguments in _cases_of(test):
            case = ElementTree.SubElement(suite, "testcase", name=name)
            begin = time.monotonic()
            failure = "" if reason else _run(test, arguments)
            case.set("time", f"{time.monotonic() - begin:.3f}")
            if reason:
                ElementTree.SubElement(case, "skipped", message=reason)
            if failure:
                ElementTree.SubElement(case, "failure", message=failure.strip().splitlines()[-1]).text = failure
            passed = passed and not failure
            print(f"{path.name}::{name} {'SKIPPED' if reason else 'FAILED' if failure else 'PASSED'}", flush=True)
    return passed


def main(arguments: list[str]) -> int:
    file = next(each.partition("=")[2] for each in arguments if each.startswith("--junitxml="))
    suite = ElementTree.Element("testsuite")
    passed = True
    for path in [Path(each).resolve() for each in arguments if each.endswith(".py")]:
        try:
            passed = _run_file(path, suite) and passed
        except ImportError as error:
            case = ElementTree.SubElement(suite, "testcase", name=path.name, time="0")
            ElementTree.SubElement(case, "error", message=f"cannot be imported: {error}")
            passed = False
    ElementTree.ElementTree(suite).write(file)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
