# SPDX-License-Identifier: Apache-2.0
"""What programs in C and C++ are built with, in the folder of the package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent


def get_include() -> str:
    """Returns the folder of the headers `atp/atp.h` and `atp/atp.hpp`."""
    return str(_PACKAGE / "include")


def get_library() -> str:
    """Returns the file of libatp, for the linker, the loader or `ctypes`.

    Raises:
        FileNotFoundError: this package has none.
    """
    found = sorted((_PACKAGE / "lib").glob("libatp.so*"))
    if not found:
        raise FileNotFoundError(f"{_PACKAGE / 'lib'} has no libatp.so: install the package again")
    return str(found[0])
