// SPDX-License-Identifier: Apache-2.0
#include "control/breaks.h"

namespace atp::control {

thread_local ControlBreak active_break = ControlBreak::none;

}  // namespace atp::control
