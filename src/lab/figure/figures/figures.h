// SPDX-License-Identifier: Apache-2.0
// The figures. The comment on each line names the file that defines it.
#pragma once

#include "figure/figure.h"

namespace atp::figure {

extern const Figure fig3;             // phases.cc
extern const Figure fig8;             // models.cc
extern const Figure fig9;             // racks.cc
extern const Figure fig10;            // loss.cc
extern const Figure fig11;            // accuracy.cc
extern const Figure fig12;            // dumbbell.cc
extern const Figure fig13a;           // sharing.cc
extern const Figure fig13b;           // sharing.cc
extern const Figure fig13c;           // sharing.cc
extern const Figure fig14;            // hashing.cc
extern const Figure fig15;            // congestion.cc
extern const Figure fig16;            // background.cc
extern const Figure fig18;            // accuracy.cc
extern const Figure fig19;            // hosts.cc
extern const Figure fig20;            // jobs.cc
extern const Figure table1;           // overflow.cc
extern const Figure draft_fig7;       // loss.cc
extern const Figure draft_fig8;       // forwarding.cc
extern const Figure draft_fig10;      // jobs.cc
extern const Figure draft_fig12;      // background.cc
extern const Figure switchml_fig2;    // pool.cc
extern const Figure switchml_fig4;    // elements.cc
extern const Figure switchml_fig5;    // loss.cc
extern const Figure switchml_fig6;    // loss.cc
extern const Figure switchml_fig7;    // elements.cc
extern const Figure switchml_fig8;    // elements.cc
extern const Figure switchml_fig10;   // accuracy.cc
extern const Figure switchml_table1;  // models.cc
extern const Figure beyond_server;    // places.cc
extern const Figure beyond_mtu;       // packets.cc
extern const Figure beyond_probe;     // straggler.cc
extern const Figure beyond_scale;     // scale.cc
extern const Figure beyond_arrivals;  // arrivals.cc
extern const Figure beyond_restart;   // restart.cc

}  // namespace atp::figure
