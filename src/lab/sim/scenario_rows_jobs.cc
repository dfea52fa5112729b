// SPDX-License-Identifier: Apache-2.0
// Rows for jobs, their gradients, and the protocol.
#include <algorithm>
#include <bit>

#include "sim/fabric.h"
#include "sim/scenario_rows.h"
#include "sim/scenario_text.h"
#include "workload/models.h"

namespace atp::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using enum ScenarioRow::Group;

// A power of two; the field holds its logarithm.
TextForm<std::uint8_t> window() {
    const auto parse = [](std::string_view text) -> std::optional<std::uint8_t> {
        const auto packets = parse_size(text);
        if (!packets || !std::has_single_bit(*packets) || *packets > (1U << ATP_WINDOW_LOG2_MAX)) return std::nullopt;
        return static_cast<std::uint8_t>(std::countr_zero(*packets));
    };
    return {.placeholder = "N",
            .accepted = "a power of two from 1 to 65536",
            .parse = parse,
            .print = [](const std::uint8_t& log2) { return fmt::format("{}", std::uint64_t{1} << log2); }};
}

// The word "papers" selects the distribution of the ATP paper.
TextForm<LogNormal> log_normal() {
    const auto parse = [](std::string_view text) {
        return text == "papers" ? std::optional(gradients_of_papers) : parse_log_normal(text);
    };
    return {.placeholder = "MEDIAN:SPREAD",
            .accepted = std::string(log_normal_forms),
            .parse = parse,
            .print = log_normal_text};
}

TextForm<std::string> model() {
    const auto parse = [](std::string_view text) -> std::optional<std::string> {
        const workload::Model* found = workload::find_model(text);
        return found == nullptr ? std::nullopt : std::optional(found->name);
    };
    return {.placeholder = "NAME", .accepted = workload::model_names(), .parse = parse};
}

void draw_lanes(Random& random, Scenario& s) {
    static constexpr std::array<std::uint16_t, 6> lanes{2, 3, 8, 16, 33, 62};
    s.lanes = random.pick(lanes);
}

void draw_window(Random& random, Scenario& s) {
    static constexpr std::array<std::uint8_t, 9> windows{0, 1, 1, 2, 2, 3, 5, 6, 8};
    s.window_log2 = random.pick(windows);
}

void draw_aggregators(Random& random, Scenario& s) {
    static constexpr std::array<std::uint32_t, 8> tables{1, 1, 2, 3, 8, 64, 256, 4096};
    s.aggregators = random.pick(tables);
}

// Draws a size that gives up to 200 fragments in the whole run. The last fragment of a tensor is usually shorter.
void draw_bytes(Random& random, Scenario& s) {
    const std::uint64_t fragments = random.between(s.tensors, 200);
    s.bytes = std::max<std::uint64_t>(fragments * s.payload_lanes() * sizeof(float) / s.jobs / s.iterations,
                                      sizeof(float) * s.tensors * s.channels) +
              sizeof(float) * random.below(s.payload_lanes());
}

// Mostly draws a number shortly before sequence numbers wrap around or change their sign.
void draw_first_seq(Random& random, Scenario& s) {
    static constexpr std::array<std::uint32_t, 3> edges{0U, 0x80000000U, 0xffffffffU};
    if (!random.chance(0.8)) {
        s.first_seq = static_cast<std::uint32_t>(random.next());
        return;
    }
    const std::uint32_t edge = random.pick(edges);
    s.first_seq = edge - between(random, 0, 150);
}

void draw_ageing(Random& random, Scenario& s) {
    s.ageing = random.chance(0.5) ? between(random, microseconds(50), milliseconds(5))
                                  : between(random, milliseconds(5), milliseconds(500));
}

constexpr std::array<double, 5> drawn_shares{0, 0, 0.02, 0.2, 1.0};

}  // namespace

// A tensor of few elements is summed exactly, and needs no scale (tensor::exact_elements).
void draw_numbers(Random& random, Scenario& s, unsigned most_elements) {
    using tensor::LaneType;
    static constexpr std::array<LaneType, 4> types{LaneType::int32, LaneType::int32, LaneType::int16, LaneType::int8};
    static constexpr std::array<std::uint16_t, 3> lanes{16, 33, 62};
    s.scaling = random.chance(0.8) ? tensor::Scaling::dynamic : tensor::Scaling::fixed;
    s.lane_type = random.pick(types);
    s.overflow_share = s.plain_share = s.owned_share = 0;
    s.ack_lists = true;
    s.lanes = random.pick(lanes);
    s.bytes = sizeof(float) * s.tensors * between(random, 200, most_elements);
    if (s.lane_type != LaneType::int32 && random.chance(0.3)) {
        s.int32_switch = between(random, 0, count_switches(s.topology) - 1);
    }
}

void add_packet_rows(Rows& rows) {
    rows.push_back(toggle<&Scenario::audit>(protocol, "--no-audit", false, "no audit lane in packets",
                                            [](Random& random, Scenario& s) { s.audit = !random.chance(0.05); }));
    rows.push_back(alias(protocol, "--audit", "--no-audit", "an audit lane in every packet, as by default",
                         [](Scenario& s) { s.audit = true; }));
    rows.push_back(row<&Scenario::lanes>(protocol, "--lanes", number<std::uint16_t>(1, ATP_MAX_LANES),
                                         "lanes of 4 bytes in each packet [62]", draw_lanes));
    rows.push_back(row<&Scenario::window_log2>(protocol, "--window", window(), "slots W of a channel, in packets [256]",
                                               draw_window));
    rows.push_back(row<&Scenario::aggregators>(protocol, "--aggregators", number<std::uint32_t>(1, 1U << 24U),
                                               "aggregators of each switch [4096]", draw_aggregators));
}

void add_job_rows(Rows& rows) {
    rows.push_back(row<&Scenario::jobs>(
        jobs, "--jobs", number<unsigned>(1, 1024), "jobs that run at the same time [1]",
        [](Random& random, Scenario& s) { s.jobs = random.chance(0.5) ? 1 : between(random, 2, 3); }));
    ScenarioRow workers = row<&Scenario::job_workers>(
        jobs, "--job-workers", number<unsigned>(1, 1024),
        "workers of a job, on the topology's first hosts; jobs take several numbers in turn [all hosts]");
    workers.placeholder = "N[,N...]";
    workers.delimiter = ',';
    rows.push_back(std::move(workers));
    rows.push_back(
        row<&Scenario::channels>(jobs, "--channels", number<unsigned>(1, 64), "channels of each job [1]",
                                 [](Random& random, Scenario& s) { s.channels = random.chance(0.8) ? 1 : 2; }));
    rows.push_back(row<&Scenario::tensors>(jobs, "--tensors", number<unsigned>(1, 256),
                                           "tensors that --bytes is divided into [1]",
                                           [](Random& random, Scenario& s) { s.tensors = between(random, 1, 4); }));
    rows.push_back(
        row<&Scenario::iterations>(jobs, "--iterations", number<unsigned>(1, 1'000'000), "iterations of each job [1]",
                                   [](Random& random, Scenario& s) { s.iterations = between(random, 1, 3); }));
    rows.push_back(row<&Scenario::bytes>(
        jobs, "--bytes", size(), "float32 values that each worker contributes in an iteration [1MB]", draw_bytes));
    rows.push_back(row<&Scenario::pause>(jobs, "--off-phase", duration(), "computation between two iterations [0]",
                                         [](Random& random, Scenario& s) {
                                             if (random.chance(0.5))
                                                 s.pause = between(random, Duration(0), milliseconds(2));
                                         }));
    rows.push_back(row<&Scenario::start_spread>(jobs, "--start-spread", duration(),
                                                "time within which the processes of a job start [0]"));
    rows.push_back(row<&Scenario::stagger>(jobs, "--stagger", duration(),
                                           "delay of the start of each job after the job before it [0]",
                                           [](Random& random, Scenario& s) {
                                               if (random.chance(0.5))
                                                   s.stagger = between(random, Duration(0), milliseconds(1));
                                           }));
    rows.push_back(row<&Scenario::mean_gap>(jobs, "--arrivals", duration(),
                                            "mean of a random delay that is added to --stagger [0]"));
    rows.push_back(row<&Scenario::first_job>(
        jobs, "--first-job", number<std::uint32_t>(0, 0xffff0000U),
        "number of the first job, on which hashes depend [1]",
        [](Random& random, Scenario& s) { s.first_job = static_cast<std::uint32_t>(random.next() >> 34U); }));
}

void add_protocol_rows(Rows& rows) {
    rows.push_back(row<&Scenario::first_seq>(protocol, "--first-seq", number<std::uint32_t>(0, 0xffffffffU),
                                             "first sequence number [0]", draw_first_seq));
    rows.push_back(row<&Scenario::ageing>(protocol, "--ageing", duration(),
                                          "idle time after which a switch may give an aggregator away [500ms]",
                                          draw_ageing));
    rows.push_back(row<&Scenario::initial_packets>(
        protocol, "--initial-window", number<std::uint32_t>(0, 1U << ATP_WINDOW_LOG2_MAX),
        "first congestion window, in packets; papers: 200; 0: as in the product, 61,200 B for a job's channels [0]",
        [](Random& random, Scenario& s) { s.initial_packets = random.chance(0.5) ? 0 : between(random, 1, 32); }));
    rows.push_back(toggle<&Scenario::congestion_control>(
        protocol, "--no-congestion-control", false, "congestion windows never shrink",
        [](Random& random, Scenario& s) { s.congestion_control = !random.chance(0.1); }));
    rows.push_back(row<&Scenario::min_timeout>(
        protocol, "--min-timeout", duration(), "shortest timeout of a worker [1ms]",
        [](Random& random, Scenario& s) { s.min_timeout = between(random, microseconds(100), milliseconds(1)); }));
    rows.push_back(row<&Scenario::max_timeout>(
        protocol, "--max-timeout", duration(), "longest timeout of a worker [200ms]",
        [](Random& random, Scenario& s) { s.max_timeout = between(random, milliseconds(2), milliseconds(200)); }));
    rows.push_back(
        toggle<&Scenario::linear>(protocol, "--linear", true, "slots take aggregators in sequence, not by a hash"));
    rows.push_back(toggle<&Scenario::partition>(
        protocol, "--partition", true,
        "each job has an equal part of the aggregators to itself, and waits if its part is too small"));
    rows.push_back(toggle<&Scenario::reactive>(
        protocol, "--reactive", true,
        "switches also add fragments whose sum could leave 32 bits: overflows are recovered",
        [](Random& random, Scenario& s) { s.reactive = random.chance(0.4); }));
    rows.push_back(alias(protocol, "--proactive", "--reactive",
                         "fragments whose sum could leave 32 bits bypass the switches, as by default",
                         [](Scenario& s) { s.reactive = false; }));
    rows.push_back(row<&Scenario::forward_share>(
        protocol, "--forward-share", share(),
        "share of the fragments that switches forward to the server instead of adding them [0]"));
    rows.push_back(toggle<&Scenario::blind_resend>(protocol, "--blind-resend", true,
                                                   "a worker's timer sends fragments again instead of a PROBE"));
    rows.push_back(row<&Scenario::float_share>(
        jobs, "--float-share", share(), "share of the fragments with NaN, infinities and values beyond int32 [0]",
        [](Random& random, Scenario& s) { s.float_share = random.pick(drawn_shares); }));
    rows.push_back(row<&Scenario::overflow_share>(
        jobs, "--overflow-share", share(), "share of the fragments with sums near the limits of int32 [0]",
        [](Random& random, Scenario& s) { s.overflow_share = (1 - s.float_share) * random.pick(drawn_shares); }));
}

void add_gradient_rows(Rows& rows) {
    rows.push_back(row<&Scenario::plain_share>(jobs, "--plain-share", share(),
                                               "share of the tensors whose sums are unscaled integers [0]",
                                               [](Random& random, Scenario& s) {
                                                   if (random.chance(0.3))
                                                       s.plain_share = random.chance(0.5) ? 1.0 : 0.5;
                                               }));
    rows.push_back(row<&Scenario::gradients>(
        jobs, "--gradients", log_normal(),
        "log-normal largest element of a fragment at a scale of 1e8; papers: 0.0082:1.36 [all small]"));
}

void add_training_rows(Rows& rows) {
    rows.push_back(
        row<&Scenario::models>(training, "--model", model(),
                               "model that gives gradients and computation; jobs take several models in turn [none]"));
    rows.push_back(row<&Scenario::batch>(training, "--batch", number<unsigned>(1, 1'000'000),
                                         "samples of a worker in an iteration [the model's]"));
    rows.push_back(
        row<&Scenario::scale>(training, "--scale", real("FACTOR", 1, 1e9),
                              "divisor of a model's parameters, buckets and times, but not of delays and windows [1]"));
    rows.push_back(row<&Scenario::slowness>(training, "--slowness", real("FACTOR", 0.001, 1e6),
                                            "factor of a model's times, for links slower than the test bed's [1]"));
    rows.push_back(row<&Scenario::bucket_bytes>(training, "--bucket", size(),
                                                "size of the buckets of a model's tensors, before scaling [4MB]"));
    rows.push_back(toggle<&Scenario::priority>(
        training, "--priority", true,
        "gradients that the next forward pass needs first overtake waiting ones; not for atp"));
}

// Drawn after all others, so that these stay as they are for a seed.
void add_train_row(Rows& rows) {
    rows.push_back(row<&Scenario::train>(
        protocol, "--train", number<std::uint32_t>(1, 128),
        "new fragments that a worker sends together, at most a quarter of its window [1]",
        [](Random& random, Scenario& s) { s.train = random.chance(0.5) ? 1 : between(random, 2, 64); }));
}

// Drawn after add_train_row(), for the same reason.
void add_owner_row(Rows& rows) {
    rows.push_back(row<&Scenario::owned_share>(
        jobs, "--owned-share", share(),
        "share of the tensors that are reduce-scatters and all-gathers, half of each; not for switchml [0]",
        [](Random& random, Scenario& s) {
            if (random.chance(0.4)) s.owned_share = random.chance(0.5) ? 1.0 : 0.5;
        }));
}

// Drawn after add_owner_row(), for the same reason.
void add_list_row(Rows& rows) {
    rows.push_back(toggle<&Scenario::ack_lists>(
        protocol, "--no-ack-lists", false,
        "switches hold no ACKs without lanes back: only those that leave together share a packet",
        [](Random& random, Scenario& s) {
            if (s.owned_share > 0) s.ack_lists = random.chance(0.7);
        }));
}

// Drawn after add_list_row(), for the same reason.
void add_number_rows(Rows& rows) {
    using tensor::LaneType;
    using tensor::Scaling;
    static constexpr std::array<Word<Scaling>, 2> scalings{{{"fixed", Scaling::fixed}, {"dynamic", Scaling::dynamic}}};
    static constexpr std::array<Word<LaneType>, 3> types{
        {{"int32", LaneType::int32}, {"int16", LaneType::int16}, {"int8", LaneType::int8}}};
    rows.push_back(row<&Scenario::scaling>(
        jobs, "--scaling", words("SCALING", scalings),
        "dynamic: as the product, numbers in memory whose scales follow from earlier sums [fixed]",
        [](Random& random, Scenario& s) {
            if (random.chance(0.15)) draw_numbers(random, s, random.chance(0.1) ? 12'000 : 1'200);
        }));
    rows.push_back(
        row<&Scenario::lane_type>(jobs, "--lane-type", words("TYPE", types), "integers of numbers in packets [int32]"));
    rows.push_back(row<&Scenario::int32_switch>(jobs, "--int32-switch", number<unsigned>(0, 1023),
                                                "number of a switch behind one in the path that adds only int32: "
                                                "narrow integers are then sent as int32 [none]"));
    rows.push_back(row<&Scenario::ranks_of_host>(
        jobs, "--ranks-of-host", number<unsigned>(1, ATP_PART_RANK_MASK),
        "ranks of a worker's host, which sum in its memory first; the worker sends their sums [1]",
        [](Random& random, Scenario& s) {
            if (s.may_share_memory() && random.chance(0.2)) s.ranks_of_host = between(random, 2, 4);
        }));
    rows.push_back(toggle<&Scenario::in_path>(
        network, "--in-path", true,
        "switches have no address: ranks join the switch or the host of the server, and packets are added as they pass",
        [](Random& random, Scenario& s) {
            const bool possible = s.aggregation == Aggregation::everywhere && s.server != ServerPlacement::colocated;
            s.in_path = possible && random.chance(0.15);
        }));
    rows.push_back(toggle<&Scenario::groups>(network, "--groups", true,
                                             "results go to a multicast group of each channel",
                                             [](Random& random, Scenario& s) { s.groups = random.chance(0.2); }));
    rows.push_back(toggle<&Scenario::keys>(jobs, "--keys", true,
                                           "each job is a tenant: switches ask for its key and share their memory out",
                                           [](Random& random, Scenario& s) { s.keys = random.chance(0.25); }));
    rows.push_back(row<&Scenario::most_packets>(
        protocol, "--largest-window", number<std::uint32_t>(0, 1U << ATP_WINDOW_LOG2_MAX),
        "largest congestion window, in packets; the product's is a quarter of --window; 0: as large [0]",
        [](Random& random, Scenario& s) {
            if (random.chance(0.5)) s.most_packets = std::max((1U << s.window_log2) / 4, 1U);
        }));
}

}  // namespace atp::sim
