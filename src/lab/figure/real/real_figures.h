// SPDX-License-Identifier: Apache-2.0
// The figures on real packets. The comment on each line names the file that defines it.
#pragma once

#include "figure/figure.h"

namespace atp::figure {

extern const Figure real_fig3;             // phases.cc
extern const Figure real_fig8;             // models.cc
extern const Figure real_fig9;             // places.cc
extern const Figure real_fig10;            // losses.cc
extern const Figure real_fig12;            // dumbbell.cc
extern const Figure real_fig13a;           // shared_memory.cc
extern const Figure real_fig13b;           // shared_memory.cc
extern const Figure real_fig13c;           // shared_memory.cc
extern const Figure real_fig14;            // places.cc
extern const Figure real_fig15;            // congestion.cc
extern const Figure real_fig16;            // background.cc
extern const Figure real_fig20;            // jobs.cc
extern const Figure real_draft_fig7;       // losses.cc
extern const Figure real_draft_fig8;       // forwarding.cc
extern const Figure real_draft_fig10;      // jobs.cc
extern const Figure real_draft_fig12;      // background.cc
extern const Figure real_switchml_fig2;    // pool.cc
extern const Figure real_switchml_fig4;    // elements.cc
extern const Figure real_switchml_fig5;    // loss_times.cc
extern const Figure real_switchml_fig6;    // places.cc
extern const Figure real_switchml_fig7;    // elements.cc
extern const Figure real_switchml_fig8;    // elements.cc
extern const Figure real_switchml_table1;  // models.cc

}  // namespace atp::figure
