// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "apps/atp-lab/bench_command.h"
#include "apps/atp-lab/check_command.h"
#include "apps/atp-lab/figure_command.h"
#include "apps/atp-lab/models_command.h"
#include "apps/atp-lab/plan_command.h"
#include "apps/atp-lab/simulate_command.h"
#include "apps/atp-lab/switch_command.h"
#include "apps/common/program.h"
#include "apps/common/revision.h"

namespace {

// In the order of --help.
constexpr std::array<atp::apps::Register, 7> commands{atp::apps::register_simulate, atp::apps::register_models,
                                                      atp::apps::register_figure,   atp::apps::register_check,
                                                      atp::apps::register_plan,     atp::apps::register_lab_switch,
                                                      atp::apps::register_lab_bench};

}  // namespace

int main(int argc, char** argv) {
    return atp::apps::run_program(
        {"atp-lab", "The laboratory of ATP: simulator, model checker, figures, planner, experiments",
         atp::apps::version_text()},
        commands, argc, argv);
}
