// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.h"

namespace atp::python {

// The Python that runs in this process, if one does. Its functions are looked up at run time, so that one library
// serves every release of Python, and also programs without it.

// Python runs signal handlers on its main thread, and only when native code lets it. A wait that Ctrl-C must be able to
// end therefore calls handle_signals() at this interval.
inline constexpr Duration signal_interval = std::chrono::milliseconds(100);

// Throws what a handler has raised, for example KeyboardInterrupt. Any thread may call; takes Python's lock briefly.
void handle_signals();

// Without Python's lock, if this thread has it. The lock comes back with the destructor.
class WithoutLock {
  public:
    WithoutLock();
    ~WithoutLock();
    WithoutLock(const WithoutLock&) = delete;
    WithoutLock& operator=(const WithoutLock&) = delete;

  private:
    void* state_ = nullptr;
};

}  // namespace atp::python
