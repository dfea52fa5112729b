# SPDX-License-Identifier: Apache-2.0
"""Prints a CMake list of properties of the torch that this Python imports: its folder, its version, whether it uses the
string type of gcc 5 and later, and the definitions that an extension needs to share types with it."""

import os

import torch

abi = [(name, getattr(torch._C, f"_PYBIND11_{name}", None)) for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")]
definitions = [f'PYBIND11_{name}="{value}"' for name, value in abi if value is not None]
facts = [os.path.dirname(torch.__file__), torch.__version__, int(torch.compiled_with_cxx11_abi()), *definitions]
print(*facts, sep=";")
