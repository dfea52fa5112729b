# SPDX-License-Identifier: Apache-2.0
# CMake writes this module (python/CMakeLists.txt).
VERSION: str  # of the project
