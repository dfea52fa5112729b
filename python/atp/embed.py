# SPDX-License-Identifier: Apache-2.0
"""What programs in C and C++ are built with, in the folder of the package."""

from __future__ import annotations

from pathlib import Path

from . import _library


def get_include() -> str:
    """Returns the folder of the headers `atp/atp.h` and `atp/atp.hpp`."""
    return str(Path(__file__).parent / "include")


def get_library() -> str:
    """Returns the file of libatp that this package uses, for the linker, the loader or `ctypes`."""
    return str(_library.file())
