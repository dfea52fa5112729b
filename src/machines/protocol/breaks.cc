// SPDX-License-Identifier: Apache-2.0
#include "protocol/breaks.h"

thread_local enum atp_break atp_active_break = ATP_BREAK_none;
