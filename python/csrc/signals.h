// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.h"

namespace atp::python {

// Python runs its handlers of signals when it is given the chance, and on its main thread alone: a wait that is to end
// with ctrl-C gives it the chance so often.
inline constexpr Duration signal_interval = std::chrono::milliseconds(100);

// Throws what a handler has raised, KeyboardInterrupt for one. On any thread; takes Python's lock for a moment.
void handle_signals();

}  // namespace atp::python
