// SPDX-License-Identifier: Apache-2.0
// The state machines are compiled twice: as shipped, and with the injected faults of breaks.h for the model checker.
// An inline namespace separates the two, so that one program can link both.
#pragma once

#ifdef ATP_BREAKABLE
#define ATP_VARIANT breakable
#else
#define ATP_VARIANT shipped
#endif
