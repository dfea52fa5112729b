# SPDX-License-Identifier: Apache-2.0
"""Scripts get the backend without `import atp`, also by the name `gloo`, and at almost no cost for other programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import atp_autoload
import pytest
import torch
import torch.distributed as dist

import atp

ROOT = Path(__file__).resolve().parent.parent.parent
DEADLINE_S = 150.0
LOADS_ON_IMPORT = hasattr(torch, "_import_device_backends")  # from 2.5 on
LOADS_BY_NAME = hasattr(dist.Backend, "_ensure_backend_registered")  # from 2.14 on
loads_on_import = pytest.mark.skipif(not LOADS_ON_IMPORT, reason="torch before 2.5 loads no entry points")

# Forms groups as the arguments say and prints which backend torch names, and which one sums. gather() needs Gloo. Each has
# a store of its own, since Gloo would find the addresses of an earlier group in a common one.
GROUPS = """
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


def sum_and_gather(asked, group):
    rank = dist.get_rank()
    tensor = torch.full((1000,), rank + 1.0)
    dist.all_reduce(tensor, group=group)
    gathered = [torch.zeros(1) for _ in range(2)]
    dist.gather(tensor[:1], gathered if rank == 0 else None, group=group)
    sums = torch.cat(gathered).tolist()
    if rank == 0:
        print(asked, dist.get_backend(group), group._get_backend(torch.device("cpu")).name(), sums, sep=" | ", flush=True)


folder, *names = sys.argv[1:]
for number, asked in enumerate(names):
    if asked == "mesh":
        group = init_device_mesh("cpu", (2,)).get_group()
    else:
        store = dist.FileStore(os.path.join(folder, str(number)), 2)
        name = None if asked == "None" else asked
        dist.init_process_group(name, store=store, rank=int(os.environ["RANK"]), world_size=2)
        group = dist.group.WORLD
    sum_and_gather(asked, group)
    sum_and_gather("new_group", dist.new_group(backend="gloo"))
    dist.destroy_process_group()
"""

# Forms a group of one rank.
ALONE = """
import torch
import torch.distributed as dist

print("imported", flush=True)
dist.init_process_group({name!r}, store=dist.HashStore(), rank=0, world_size=1)
print(dist.get_backend())
"""


def run_python(*arguments: object, **variables: str) -> subprocess.CompletedProcess:
    variables = {"OMP_NUM_THREADS": "1", "ATP_TIMEOUT": "60", **variables}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )


def formed(folder: Path, *asked: str, **variables: str) -> tuple[list[list[str]], str]:
    """Runs GROUPS on two ranks. Returns its lines, and the text on standard error."""
    script = folder / "groups.py"
    script.write_text(GROUPS)
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    finished = run_python(*launcher, script, folder, *asked, **variables)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return [line.split(" | ") for line in finished.stdout.splitlines() if " | " in line], finished.stderr


SUMS = "[3.0, 3.0]"


@loads_on_import
def test_script_without_import_gets_the_backend_and_gloo_stays_gloo(tmp_path):
    lines, log = formed(tmp_path, "atp", "cpu:atp", "gloo")
    assert lines == [
        ["atp", "atp", "atp", SUMS],
        ["new_group", "gloo", "gloo", SUMS],
        ["cpu:atp", "cpu:atp", "atp", SUMS],
        ["new_group", "gloo", "gloo", SUMS],
        ["gloo", "gloo", "gloo", SUMS],
        ["new_group", "gloo", "gloo", SUMS],
    ]
    assert "backend replaced" not in log


@loads_on_import
def test_each_way_to_ask_for_gloo_gets_the_backend_with_one_line(tmp_path):
    names = ["gloo", "GLOO", "cpu:gloo", "cpu:gloo,cuda:gloo", "None", "mesh", "atp"]
    lines, log = formed(tmp_path, *names, ATP_AS="gloo")
    assert [(asked, sums) for asked, _, sums_by, sums in lines if sums_by == "atp"] == [
        (asked, SUMS) for name in names for asked in (name, "new_group")
    ]
    # torch returns a list of devices and names as the program gave it.
    assert {named for _, named, _, _ in lines} == {"atp", "cpu:gloo", "cpu:gloo,cuda:gloo"}
    assert log.count("backend replaced name=gloo backend=atp") == 1


@loads_on_import
def test_other_values_of_atp_as_fail_when_a_group_forms():
    failed = run_python("-c", ALONE.format(name="gloo"), ATP_AS="nccl")
    assert (failed.returncode, failed.stdout) == (1, "imported\n")
    assert "ValueError: ATP_AS='nccl': use 'gloo'" in failed.stderr


@pytest.mark.skipif(not LOADS_BY_NAME, reason="torch before 2.14 does not look for a backend by its name")
def test_name_loads_the_backend_without_entry_points_of_devices():
    finished = run_python("-c", ALONE.format(name="atp"), TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert finished.stdout == "imported\natp\n", finished.stderr


@pytest.mark.parametrize("first, autoload", [("torch, atp", "1"), ("atp", "0"), ("atp_autoload, atp", "1")])
def test_importing_the_package_registers_once(first, autoload):
    text = f"""
import {first}
import torch.distributed as dist

print(dist.Backend.backend_list.count("atp"), dist.Backend._plugins["ATP"].creator_fn.__module__)
"""
    finished = run_python("-c", text, TORCH_DEVICE_BACKEND_AUTOLOAD=autoload)
    assert finished.stdout == "1 atp_autoload\n", finished.stderr


def test_an_error_while_registering_leaves_torch_usable(monkeypatch, caplog):
    def fail(*_, **__):
        raise RuntimeError("no such name")

    monkeypatch.setattr(atp_autoload._Process, "registered", False)
    monkeypatch.setattr(dist.Backend, "register_backend", fail)
    atp_autoload.autoload()
    assert "the backend 'atp' is not available" in caplog.text and "no such name" in caplog.text


@loads_on_import
def test_without_its_libraries_torch_imports_and_the_group_names_a_file(tmp_path):
    package = Path(atp.__file__).parent
    shutil.copytree(package, tmp_path / "atp")
    shutil.copy(atp_autoload.__file__, tmp_path)
    (description,) = package.parent.glob("atpnet-*.dist-info")
    shutil.copytree(description, tmp_path / description.name)
    libraries = list(tmp_path.rglob("*.so*"))
    for library in libraries:
        library.unlink()
    failed = run_python("-c", ALONE.format(name="atp"), PYTHONPATH=str(tmp_path))
    assert (failed.returncode, failed.stdout) == (1, "imported\n")
    named = [library.name.partition(".so")[0] + ".so" for library in libraries]  # without the version behind
    assert any(name in failed.stderr for name in named), failed.stderr


@loads_on_import
def test_import_of_torch_loads_one_small_module():
    text = """
import sys
import torch
from importlib.metadata import entry_points

(entry,) = entry_points(group="torch.backends", name="atp")
before = set(sys.modules)
entry.load()()
print(*sorted(set(sys.modules) - before), "libatp" in open("/proc/self/maps").read())
"""
    finished = run_python("-c", text, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert finished.stdout == "atp_autoload False\n", finished.stderr


def test_entry_points_of_the_build_are_those_of_the_project():
    tomllib = pytest.importorskip("tomllib", reason="Python before 3.11 has no tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for group, named in project["entry-points"].items():
        found = {entry.name: entry.value for entry in entry_points(group=group) if entry.dist.name == "atpnet"}
        assert found == named
