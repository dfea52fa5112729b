// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace atp::python {

// Adds push() and pull() of a group's keys to the module.
void register_push_pull(pybind11::module_& module);

}  // namespace atp::python
