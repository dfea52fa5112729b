// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "apps/atp/bench_command.h"
#include "apps/atp/doctor_command.h"
#include "apps/atp/drain_command.h"
#include "apps/atp/key_command.h"
#include "apps/atp/metrics_command.h"
#include "apps/atp/stats_command.h"
#include "apps/atp/switch_command.h"
#include "apps/atp/top_command.h"
#include "apps/atp/trace_command.h"
#include "apps/common/program.h"
#include "apps/common/revision.h"

namespace {

// In the order of --help.
constexpr std::array<atp::apps::Register, 9> commands{
    atp::apps::register_switch,  atp::apps::register_stats, atp::apps::register_top,
    atp::apps::register_metrics, atp::apps::register_drain, atp::apps::register_bench,
    atp::apps::register_doctor,  atp::apps::register_trace, atp::apps::register_key};

}  // namespace

int main(int argc, char** argv) {
    return atp::apps::run_program({"atp", "ATP sums tensors inside the network", atp::apps::version_text()}, commands,
                                  argc, argv);
}
