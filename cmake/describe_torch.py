# SPDX-License-Identifier: Apache-2.0
"""Says, as a list of CMake, what an extension has to know of the torch that this Python imports:
its folder, its version, whether it has the strings of gcc 5 and later, and definitions with which types are shared."""

import os

import torch

abi = [(name, getattr(torch._C, f"_PYBIND11_{name}", None)) for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")]
definitions = [f'PYBIND11_{name}="{value}"' for name, value in abi if value is not None]
facts = [os.path.dirname(torch.__file__), torch.__version__, int(torch.compiled_with_cxx11_abi()), *definitions]
print(*facts, sep=";")
