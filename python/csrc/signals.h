// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.h"

namespace atp::python {

// Python runs signal handlers on its main thread, and only when native code lets it. A wait that Ctrl-C must be able to
// end therefore calls handle_signals() at this interval.
inline constexpr Duration signal_interval = std::chrono::milliseconds(100);

// Throws what a handler has raised, for example KeyboardInterrupt. Any thread may call; takes Python's lock briefly.
void handle_signals();

}  // namespace atp::python
