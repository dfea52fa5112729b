# SPDX-License-Identifier: Apache-2.0
"""What `import atp` finds in its folder: the library for this PyTorch, only libatp, or nothing."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch.distributed as dist

import atp
from atp import _library
from atp._backends import LIBRARY

PACKAGE = Path(atp.__file__).parent
SUM = """
import torch, torch.distributed as dist, atp
for _ in range(2):
    dist.init_process_group("atp", store=dist.HashStore(), rank=0, world_size=1)
    tensor = torch.ones(3)
    dist.all_reduce(tensor, dist.ReduceOp.AVG)
    print(tensor.tolist(), atp.counters().operations)
    dist.destroy_process_group()
"""


def run_with(folder, libraries, script, before="", into=("lib",)):
    """Runs a script with a copy of the package that has only these libraries, in each folder of `into`."""
    package = folder / "atp"
    package.mkdir()
    for file in PACKAGE.glob("*.py"):
        (package / file.name).symlink_to(file.resolve())
    (folder / "atp_autoload.py").symlink_to((PACKAGE.parent / "atp_autoload.py").resolve())
    for name in into:
        (package / name).mkdir(parents=True, exist_ok=True)
        for file in libraries:
            (package / name / file.name).symlink_to(file.resolve())
    environment = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "ATP_HOST_LEVEL": "on"}
    return subprocess.run(
        [sys.executable, "-c", before + script], capture_output=True, text=True, env=environment, timeout=120
    )


def libatp():
    return list((PACKAGE / "lib").glob("libatp.so*"))


@pytest.mark.parametrize(
    "before",
    [
        "import torch; torch.__version__ = torch.torch_version.TorchVersion('9.9.1+cpu')",
        "import torch; torch.compiled_with_cxx11_abi = lambda: False",
    ],
    ids=["release", "string type"],
)
def test_unknown_torch_does_without_a_library_and_warns_once(tmp_path, before):
    ran = run_with(tmp_path, libatp(), SUM, before + "\n")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["[1.0, 1.0, 1.0] 1"] * 2
    warnings = [line for line in ran.stderr.splitlines() if "library missing" in line]
    name = "libatp_torch_9.9.so" if "9.9" in before else "libatp_torch_"
    assert len(warnings) == 1 and f"library missing name={name}" in warnings[0], ran.stderr
    assert "slower=" in warnings[0] and 'without="Flight Recorder, error_feedback_hook"' in warnings[0]


def test_library_that_does_not_load_is_done_without(tmp_path):
    unsuitable = tmp_path / LIBRARY.name
    unsuitable.write_bytes(b"not a library")
    into = sorted({"lib", str(LIBRARY.parent.relative_to(PACKAGE))})
    ran = run_with(tmp_path, [*libatp(), unsuitable], SUM, into=into)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["[1.0, 1.0, 1.0] 1"] * 2
    (warning,) = (line for line in ran.stderr.splitlines() if "library missing" in line)
    assert (
        f"library missing name={LIBRARY.name}" in warning
        and f'reason="it does not load: {unsuitable}: file too short"' in warning
    )


def test_import_names_a_missing_libatp(tmp_path):
    ran = run_with(tmp_path, [], "import atp")
    assert ran.returncode == 1
    expected = f"ImportError: {tmp_path / 'atp/lib/libatp.so'} is missing: install the package again"
    assert ran.stderr.splitlines()[-1] == expected


def test_programs_in_c_find_the_headers_and_the_library():
    assert (Path(atp.get_include()) / "atp" / "atp.h").is_file()
    library = ctypes.CDLL(atp.get_library())
    library.atp_version.restype = ctypes.c_char_p
    assert library.atp_version().decode() == atp.__version__


@pytest.mark.parametrize(
    "into, new_strings, expected",
    [
        (("lib", "lib/old_strings"), True, "lib"),
        (("lib", "lib/old_strings"), False, "lib/old_strings"),
        (("lib",), False, "lib"),
        (("lib/old_strings",), True, "lib/old_strings"),
    ],
)
def test_get_library_returns_the_one_that_the_package_loaded(tmp_path, into, new_strings, expected):
    before = f"import torch; torch.compiled_with_cxx11_abi = lambda: {new_strings}\n"
    script = "import atp; print(atp.get_library(), atp._library.load()._name)"
    ran = run_with(tmp_path, libatp(), script, before, into)
    assert ran.returncode == 0, ran.stderr
    returned, loaded = ran.stdout.split()
    assert Path(returned).parent == tmp_path / "atp" / expected
    assert loaded == returned


def test_version_is_the_one_of_the_project() -> None:
    text = (Path(__file__).parents[2] / "CMakeLists.txt").read_text()
    assert f"project(atp VERSION {atp.__version__} " in text


def test_store_ends_with_its_last_user():
    store = _library.Store(dist.HashStore())
    store.set("key", b"value")
    ended = weakref.ref(store)
    gc.disable()
    try:
        del store
        assert ended() is None
    finally:
        gc.enable()
