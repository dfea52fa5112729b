// SPDX-License-Identifier: Apache-2.0
// The machines are compiled twice: as shipped, and with the deliberate mistakes of breaks.h for the model checker.
// An inline namespace keeps the two apart, so that one program can hold both.
#pragma once

#ifdef ATP_BREAKABLE
#define ATP_VARIANT breakable
#else
#define ATP_VARIANT shipped
#endif
