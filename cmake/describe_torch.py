# SPDX-License-Identifier: Apache-2.0
"""Prints a CMake list of properties of the torch that this Python imports: its folder, its version, and whether it uses
the string type of gcc 5 and later."""

import os

import torch

print(os.path.dirname(torch.__file__), torch.__version__, int(torch.compiled_with_cxx11_abi()), sep=";")
