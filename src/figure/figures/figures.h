// SPDX-License-Identifier: Apache-2.0
// Each is told in the file of its family.
#pragma once

#include "figure/figure.h"

namespace atp::figure {

extern const Figure fig9;            // racks.cc
extern const Figure fig14;           // hashing.cc
extern const Figure fig16;           // background.cc
extern const Figure fig19;           // hosts.cc
extern const Figure beyond_server;   // places.cc
extern const Figure beyond_mtu;      // packets.cc
extern const Figure beyond_scale;    // scale.cc
extern const Figure beyond_restart;  // restart.cc

}  // namespace atp::figure
