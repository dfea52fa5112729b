# SPDX-License-Identifier: Apache-2.0
# CMake writes this module (python/CMakeLists.txt).
VERSION: str  # of the project
TORCH: str  # the release that the backend is compiled for: "2.13"
CXX11_STRINGS: bool  # with the string type of gcc 5 and later
