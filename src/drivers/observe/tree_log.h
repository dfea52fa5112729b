// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/tree_notice.h"
#include "observe/log.h"

namespace atp::observe {

// Writes what happened in the tree of a switch to its log.
void write_notice(Log& log, const control::TreeNotice& notice);

}  // namespace atp::observe
