# SPDX-License-Identifier: Apache-2.0
"""`import atp` with a torch that the backend was not built for."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import atp
from atp import _build, _fit

RELEASE = ".".join(torch.__version__.split(".")[:2])
STRINGS = torch.compiled_with_cxx11_abi()


def test_the_torch_of_the_build_fits() -> None:
    assert _build.TORCH == RELEASE
    assert _fit.why_unfit(torch.__version__, STRINGS) == ""


@pytest.mark.parametrize("version", [f"{RELEASE}.7", f"{RELEASE}.0+cu999", f"{RELEASE}.1a0+git1234567"])
def test_another_patch_release_or_package_fits(version: str) -> None:
    assert _fit.why_unfit(version, STRINGS) == ""


@pytest.mark.parametrize("version", ["1.13.1", "2.3.0+cpu", f"{RELEASE}1.0"])
def test_another_release_is_named_with_the_remedy(version: str) -> None:
    reason = _fit.why_unfit(version, STRINGS)
    assert f"built for PyTorch {RELEASE}, but this is PyTorch {version}: install PyTorch {RELEASE}" in reason
    assert "pip install --no-build-isolation ." in reason


def test_the_other_string_type_is_named() -> None:
    assert "with the other string type" in _fit.why_unfit(torch.__version__, not STRINGS)


def test_import_raises_one_sentence_before_the_backend_loads(tmp_path: Path) -> None:
    package = tmp_path / "atp"
    package.mkdir()
    for file in Path(atp.__file__).parent.glob("*.py"):
        (package / file.name).write_bytes(file.read_bytes())
    (package / "_build.py").write_text('VERSION = "0"\nTORCH = "2.3"\nCXX11_STRINGS = True\n')
    (package / "_C.py").write_text("raise AssertionError('the backend loads')")
    ran = subprocess.run(
        [sys.executable, "-c", "import atp"], capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)}
    )
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1] == (
        f"ImportError: atp was built for PyTorch 2.3, but this is PyTorch {torch.__version__}: install PyTorch 2.3, or "
        "run `pip install --no-build-isolation .` again in the sources of atp"
    )


def test_version_is_the_one_of_the_project() -> None:
    text = (Path(__file__).parents[2] / "CMakeLists.txt").read_text()
    assert f"project(atp VERSION {atp.__version__} " in text
