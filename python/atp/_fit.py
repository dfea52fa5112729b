# SPDX-License-Identifier: Apache-2.0
"""Raises ImportError if the compiled backend is for another torch. Imported before the backend, whose symbols would be
missing: the loader names one of them, but no reason."""

from __future__ import annotations

import torch

from ._build import CXX11_STRINGS, TORCH


def why_unfit(version: str, cxx11_strings: bool) -> str:
    """Returns why the backend cannot run with this torch, and what to do; empty: it can.

    The C++ interface of torch changes with each minor release: 2.13.0 and 2.13.1 fit, 2.12 and 2.13 do not. Packages of
    one release may also differ in the string type of C++."""
    release = ".".join(version.split(".")[:2])
    if (release, cxx11_strings) == (TORCH, CXX11_STRINGS):
        return ""
    package = " with the other string type of C++" if release == TORCH else ""
    return (
        f"atp was built for PyTorch {TORCH}, but this is PyTorch {version}{package}: install PyTorch {TORCH}, or run "
        "`pip install --no-build-isolation .` again in the sources of atp"
    )


if _reason := why_unfit(torch.__version__, torch.compiled_with_cxx11_abi()):
    raise ImportError(_reason)
