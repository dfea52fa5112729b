// SPDX-License-Identifier: Apache-2.0
#include "sim/simulation.h"

#include "sim/world.h"

namespace atp::sim {
namespace {

// Events between two checks of RunOptions: a few milliseconds of processor time.
constexpr unsigned events_between_looks = 1U << 14U;

}  // namespace

Report run(const Scenario& scenario, const RunOptions& options) {
    World world(scenario, options.trace);
    bool interrupted = false;
    for (unsigned events = 0; world.step();) {
        if (++events < events_between_looks) continue;
        events = 0;
        if (options.progress) options.progress(world.share_done());
        interrupted = options.stop != nullptr && options.stop->load(std::memory_order_relaxed);
        if (interrupted) break;
    }
    Report report = world.finish();
    report.interrupted = interrupted;
    return report;
}

}  // namespace atp::sim
