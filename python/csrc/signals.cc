// SPDX-License-Identifier: Apache-2.0
#include "signals.h"

#include <pybind11/pybind11.h>

namespace atp::python {

void handle_signals() {
    if (Py_IsInitialized() == 0) return;
    const pybind11::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

}  // namespace atp::python
