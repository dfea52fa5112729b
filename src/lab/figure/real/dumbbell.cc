// SPDX-License-Identifier: Apache-2.0
// Two jobs whose paths share the links between two racks.
#include <limits>

#include "figure/figures/claims.h"
#include "figure/real/real_figures.h"
#include "figure/trial.h"

namespace atp::figure {
namespace {

constexpr Input inputs_of_real_fig12[] = {
    {"racks of two and one workers of each job, links of one rate", Origin::paper, "section 5.3.2"},
    {"computation relative to transfer", Origin::paper, "100 Gbit/s; SwitchML, table 1, ideal throughput"},
    {"algorithm of Gloo", Origin::measured, "the fastest, before the trial"},
    {"batch", Origin::free, "32 samples; the paper does not say"},
};

Drawing draw_real_fig12(const Lab& lab) {
    Trial trial{.network = training("racks:2x2", 100'000'000, {"VGG16"}, lab.free("batch", 32U)),
                .systems = {"atp", "atp-none", "gloo"}};
    trial.network.placement = sim::Placement::separate;
    trial.network.jobs = 2;
    trial.network.job_workers = {3};
    if (!lab.quick()) trial.network.iterations = 4;
    const Outcome outcome = measured(lab, trial);
    const sim::Report report = lab.run(trial.network);

    BarChart chart{
        .title = "Two VGG16 jobs of three workers at 100 Mbit/s",
        .y = {.label = "throughput relative to no communication", .from = 0},
        .categories = {"ATP", "NtoN over UDP", "Gloo over TCP"},
        .bars = {{.name = "job 1"}, {.name = "job 2"}, {.name = "job 1, simulated"}, {.name = "job 2, simulated"}},
        .levels = {{.name = "no communication", .value = 1}}};
    for (unsigned job = 0; job < trial.network.jobs; ++job) {
        for (const std::string& system : trial.systems) {
            chart.bars[job].values.push_back(training_speed(trial.network, job, outcome.seconds(system, job)));
        }
        constexpr double none = std::numeric_limits<double>::quiet_NaN();
        chart.bars[job + 2].values = {training_speed(trial.network, job, report), none, none};
    }
    const PairSpeeds atp = pair_of(chart, 0);
    const PairSpeeds servers = pair_of(chart, 1);
    const PairSpeeds ring = pair_of(chart, 2);
    Drawing drawing;
    drawing.checks = checks_of_fig12(atp, servers, "NtoN", ring, "Gloo");
    drawing.checks.push_back(
        number(1.2, same_ratio, "ATP's slower job relative to NtoN's faster job", atp.slower() / servers.faster()));
    drawing.checks.push_back(
        number(1.25, same_ratio, "ATP's slower job relative to Gloo's faster job", atp.slower() / ring.faster()));
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure real_fig12{
    .id = "fig12",
    .setup =
        "Two racks below one switch in the core stand for the dumbbell: two workers of each job are in the first rack, "
        "and one is in the second. Both jobs share the uplinks, which have the rate of a host's link. NtoN is ATP "
        "without a switch, over UDP; Gloo stands for Horovod, over TCP. RDMA is not measured. Throughput stands for "
        "time "
        "to accuracy: the number of epochs is the same.",
    .differences =
        "With the test bed's ratio of computation to transfer, the backward pass hides most communication. If hosts "
        "reach 20 instead of 100 Gbit/s, ATP leads NtoN as in the paper "
        "([experiment](experiments.md#a-fifth-of-the-rate)). The paper "
        "explains the unequal jobs of BytePS by pause frames of RDMA, which these links do not have.",
    .basis = Basis::sockets,
    .inputs = inputs_of_real_fig12,
    .seconds = 130,
    .draw = draw_real_fig12,
};

}  // namespace atp::figure
