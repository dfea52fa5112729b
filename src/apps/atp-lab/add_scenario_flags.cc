// SPDX-License-Identifier: Apache-2.0
// Flags of `atp-lab simulate` that define a scenario: names, meanings and accepted values.
#include <array>
#include <bit>
#include <charconv>

#include "apps/atp-lab/scenario_flags.h"
#include "apps/common/flags.h"
#include "apps/common/value_texts.h"
#include "workload/models.h"

namespace atp::apps {
namespace {

using sim::Scenario;

template <class T>
struct Word {
    std::string_view word;
    T value;
};

// Parses one of a few words.
template <class T, std::size_t N>
auto one_of(const std::array<Word<T>, N>& words) {
    return [words](std::string_view text) -> std::optional<T> {
        for (const Word<T>& entry : words) {
            if (entry.word == text) return entry.value;
        }
        return std::nullopt;
    };
}

// The word "papers" selects the papers' numbers.
auto parse_cost(const sim::HostCost& papers) {
    return [papers](std::string_view text) { return text == "papers" ? std::optional(papers) : parse_host_cost(text); };
}

std::optional<Duration> parse_interval(std::string_view text) {
    const auto duration = parse_duration(text);
    return duration && *duration > Duration::zero() ? duration : std::nullopt;
}

std::optional<Time> parse_time(std::string_view text) {
    const auto since_start = parse_duration(text);
    return since_start ? std::optional(Time(*since_start)) : std::nullopt;
}

// Parses a power of two, and returns its logarithm.
std::optional<std::uint8_t> parse_window(std::string_view text) {
    const auto packets = parse_size(text);
    if (!packets || !std::has_single_bit(*packets) || *packets > (1U << ATP_WINDOW_LOG2_MAX)) return std::nullopt;
    return static_cast<std::uint8_t>(std::countr_zero(*packets));
}

void add_network(CLI::App& command, Scenario& s) {
    Flags flags(command, "Network");
    flags.parsed("--topology", s.topology, "SHAPE", sim::parse_topology, sim::topology_forms,
                 fmt::format("{} [star:4]", sim::topology_forms));
    static constexpr std::array<Word<sim::ServerPlace>, 4> places{{{"switch", sim::ServerPlace::on_switch},
                                                                   {"dedicated", sim::ServerPlace::dedicated},
                                                                   {"shared", sim::ServerPlace::shared},
                                                                   {"colocated", sim::ServerPlace::colocated}}};
    flags.parsed("--server", s.server, "PLACE", one_of(places), "switch, dedicated, shared or colocated",
                 "where a job's server runs: on the last switch's box, on a host of its own, on one host with those of "
                 "all jobs, or "
                 "beside a worker [switch]");
    static constexpr std::array<Word<sim::Aggregation>, 3> modes{{{"everywhere", sim::Aggregation::everywhere},
                                                                  {"racks", sim::Aggregation::racks},
                                                                  {"nowhere", sim::Aggregation::nowhere}}};
    CLI::Option* where =
        flags.parsed("--aggregation", s.aggregation, "WHERE", one_of(modes), "everywhere, racks or nowhere",
                     "which switches aggregate; racks: each for its own rack only [everywhere]");
    flags
        .call(
            "--no-aggregation", [&s] { s.aggregation = sim::Aggregation::nowhere; },
            "switches only forward: --aggregation nowhere")
        ->excludes(where);
    static constexpr std::array<Word<sim::Placement>, 2> placements{
        {{"shared", sim::Placement::shared}, {"separate", sim::Placement::separate}}};
    flags.parsed("--placement", s.placement, "HOW", one_of(placements), "shared or separate",
                 "shared: each host runs one worker of every job; separate: each job has its own hosts [shared]");
    flags.parsed("--rate", s.rate_bits_per_s, "RATE", parse_rate, rate_forms, "of every link [100Gbps]");
    flags.parsed("--delay", s.delay, "TIME", parse_duration, duration_forms, "propagation delay of every link [1us]");
    flags.parsed("--queue", s.queue_bytes, "SIZE", parse_size, size_forms, "of every port of a switch [2MB]");
    flags.parsed("--ecn", s.ecn_bytes, "SIZE", parse_size, size_forms,
                 "a packet that finds a longer queue is marked; 0: never [200kB]");
    flags.number("--spray", s.paths, 1, 64, "paths between two switches, taken at random [1]");
    flags.parsed("--spray-skew", s.path_skew, "TIME", parse_duration, duration_forms,
                 "each further path is this much longer [5us]");
    flags.number("--overhead", s.overhead_bytes, 0, 1000,
                 "bytes on the wire beside the UDP payload: Ethernet, IP, UDP, preamble, FCS, gap [66]");
}

void add_work(CLI::App& command, Scenario& s) {
    Flags flags(command, "Jobs");
    flags.number("--jobs", s.jobs, 1, 1024, "how many at once [1]");
    const auto workers = [](std::string_view text) -> std::optional<unsigned> {
        unsigned value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = error == std::errc() && end == text.data() + text.size();
        return whole && value >= 1 && value <= 1024 ? std::optional(value) : std::nullopt;
    };
    flags
        .appended("--job-workers", s.job_workers, "N[,N...]", workers, "whole numbers from 1 to 1024",
                  "workers of a job, on the topology's first hosts; jobs take several numbers in turn [all hosts]")
        ->delimiter(',');
    flags.number("--channels", s.channels, 1, 64, "of each job [1]");
    flags.parsed("--bytes", s.bytes, "SIZE", parse_size, size_forms,
                 "float32 that each worker contributes in one iteration [1MB]");
    flags.number("--tensors", s.tensors, 1, 256, "they are divided into [1]");
    flags.number("--iterations", s.iterations, 1, 1'000'000, "of each job [1]");
    flags.parsed("--off-phase", s.pause, "TIME", parse_duration, duration_forms,
                 "computation between two iterations [0]");
    flags.appended(
        "--system", s.systems, "SYSTEM[:TRANSPORT]", sim::parse_system, sim::system_forms,
        fmt::format("what sums gradients: {}; given several times, jobs take them in turn [atp]", sim::system_forms));
    flags.parsed("--stagger", s.stagger, "TIME", parse_duration, duration_forms, "job k starts k times this later [0]");
    flags.parsed("--arrivals", s.mean_gap, "TIME", parse_duration, duration_forms,
                 "jobs arrive at random, on average this long after one another, besides the stagger [0]");
    flags.number("--first-job", s.first_job, 0, 0xffff0000U, "number of the first job: hashes depend on it [1]");
    flags.share("--float-share", s.float_share, "of the fragments with NaN, infinities and huge numbers [0]");
    flags.share("--overflow-share", s.overflow_share, "of the fragments around the ends of int32 [0]");
    flags.share("--plain-share", s.plain_share, "of the tensors whose sums are wanted as integers [0]");
    const auto gradients = [](std::string_view text) {
        return text == "papers" ? std::optional(sim::gradients_of_papers) : parse_log_normal(text);
    };
    flags.parsed("--gradients", s.gradients, "MEDIAN:SPREAD", gradients, log_normal_forms,
                 "the largest element of a fragment at a scale of 1e8 is log-normal; papers: 0.0082:1.36 [all small]");
    flags.parsed("--deadline", s.deadline, "TIME", parse_duration, duration_forms,
                 "of each operation; none by default, 1s where a worker or server crashes");
    flags.parsed("--time-limit", s.time_limit, "TIME", parse_time, duration_forms,
                 "virtual; what is unfinished then is a failure [1000s]");
}

void add_training(CLI::App& command, Scenario& s) {
    Flags flags(command, "Training");
    const auto model = [](std::string_view text) -> std::optional<std::string> {
        const workload::Model* found = workload::find_model(text);
        return found == nullptr ? std::nullopt : std::optional(found->name);
    };
    flags.appended("--model", s.models, "NAME", model, workload::model_names(),
                   fmt::format("gradients and computation of {}; given several times, jobs take them in turn",
                               workload::model_names()));
    flags.number("--batch", s.batch, 1, 1'000'000, "samples of a worker in an iteration; by default the model's");
    const auto factor = [](std::string_view text) -> std::optional<double> {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = error == std::errc() && end == text.data() + text.size();
        return whole && value >= 1 && value <= 1e9 ? std::optional(value) : std::nullopt;
    };
    flags.parsed("--scale", s.scale, "FACTOR", factor, "a number from 1 to 1e9",
                 "a model's parameters, buckets and times are divided by it; delays and windows are not [1]");
    flags.parsed("--bucket", s.bucket_bytes, "SIZE", parse_size, size_forms,
                 "a model's tensors are cut and joined to buckets of it, before scaling [4MB]");
    flags.flag("--priority", s.priority,
               "what the next forward pass needs first overtakes what waits to be sent; not for atp");
}

void add_hosts(CLI::App& command, Scenario& s) {
    Flags flags(command, "Hosts and others");
    flags.parsed("--host-cost", s.host_cost, "COST", parse_cost(sim::cost_of_papers), cost_forms,
                 "what a host spends on a packet of ATP or SwitchML: for the packet, and for copying it at that rate, "
                 "where one of "
                 "them takes longer than the wire; papers: 31ns and 64.7Gbps [0]");
    flags.parsed("--tcp-cost", s.tcp_cost, "COST", parse_cost(sim::tcp_cost_of_papers), cost_forms,
                 "likewise on a segment of tcp; papers: 45Gbps [0]");
    flags.parsed("--rdma-cost", s.rdma_cost, "COST", parse_cost(sim::rdma_cost_of_papers), cost_forms,
                 "likewise on a segment of rdma; papers: 64.7Gbps [0]");
    flags.appended(
        "--background", s.background, "FLOW", parse_background, background_forms,
        fmt::format("somebody else's traffic: {}; until all jobs are done where it has no end", background_forms));
    flags.parsed("--sample", s.sample, "TIME", parse_interval, duration_forms,
                 "the JSON gets a series of what jobs, flows and links carried in each interval");
}

void add_protocol(CLI::App& command, Scenario& s) {
    Flags flags(command, "Protocol");
    flags.number("--aggregators", s.aggregators, 1, 1U << 24U, "of each switch [4096]");
    flags.flag("--linear", s.linear, "slots take aggregators in sequence, not by a hash");
    flags.flag("--partition", s.partition,
               "each job has an equal part of the aggregators to itself, and waits where it is too small");
    flags.flag("--proactive", s.proactive, "fragments whose sum could leave 32 bits bypass the switches");
    flags.share("--forward-share", s.forward_share,
                "of the fragments that switches forward to the server instead of adding them [0]");
    flags.flag("--blind-resend", s.blind_resend, "a worker's timer sends fragments again instead of asking for them");
    flags.number("--lanes", s.lanes, 1, ATP_MAX_LANES, "of 4 bytes in each packet [62]");
    flags.parsed("--window", s.window_log2, "N", parse_window, "a power of two from 1 to 65536",
                 "slots W of a channel, in packets [256]");
    flags.number("--initial-window", s.initial_packets, 1, 1U << ATP_WINDOW_LOG2_MAX,
                 "congestion window at the start, in packets [200]");
    flags.call(
        "--no-congestion-control", [&s] { s.congestion_control = false; }, "windows never shrink");
    CLI::Option* audit = flags.call(
        "--audit", [&s] { s.audit = true; }, "an audit lane in every packet; on by default here");
    flags
        .call(
            "--no-audit", [&s] { s.audit = false; }, "without it")
        ->excludes(audit);
    flags.number("--first-seq", s.first_seq, 0, 0xffffffffU, "where sequence numbers start [0]");
    flags.parsed("--ageing", s.ageing, "TIME", parse_duration, duration_forms,
                 "an aggregator idle for longer may be taken over [500ms]");
    flags.parsed("--min-timeout", s.min_timeout, "TIME", parse_duration, duration_forms, "of a worker [1ms]");
    flags.parsed("--max-timeout", s.max_timeout, "TIME", parse_duration, duration_forms, "of a worker [200ms]");
}

void add_switchml(CLI::App& command, Scenario& s) {
    using switchml::Mode;
    Flags flags(command, "SwitchML");
    sim::SwitchmlSpec& spec = s.switchml;
    flags.number(
        "--pool", spec.pool, 1, std::uint64_t{1} << 24U,
        "slots of the switch, an equal part for each job, rounded down to a power of two [for each job 128, or "
        "512 where links are faster than 10Gbps]");
    flags.number("--switchml-lanes", spec.lanes, 1, switchml::max_lane_bytes / switchml::half_lane_bytes,
                 "of each packet; 366 fill an MTU [32]");
    flags.flag("--switchml-halves", spec.halves, "lanes travel as float16: half the bytes");
    static constexpr std::array<Word<Mode>, 3> modes{
        {{"lossless", Mode::lossless}, {"faithful", Mode::faithful}, {"offsets", Mode::compares_offsets}}};
    flags.parsed("--switchml-mode", spec.mode, "MODE", one_of(modes), "lossless, faithful or offsets",
                 "lossless: no recovery, and no queue drops its packets; faithful: the paper's recovery, which a late "
                 "duplicate deceives; offsets: recovery that compares offsets [offsets]");
    flags.parsed("--switchml-timeout", spec.timeout, "TIME", parse_interval, duration_forms,
                 "after which a packet without a result is sent again [1ms]");
}

void add_faults(CLI::App& command, Scenario& s) {
    Flags flags(command, "Faults");
    flags.share("--loss", s.faults.loss, "of the packets on every link [0]");
    flags.number("--lossy-worker", s.faults.lossy_worker, 0, 1023,
                 "a rank: only the links of this worker's host lose packets, in every job");
    flags.share("--duplicate", s.faults.duplicate, "likewise: a second copy follows [0]");
    flags.share("--reorder", s.faults.reorder, "likewise: held back, so that others overtake [0]");
    flags.parsed("--reorder-delay", s.faults.reorder_delay, "TIME", parse_duration, duration_forms,
                 "at most this long [20us]");
    flags.share("--replay", s.faults.replay, "likewise: a copy is delivered once more when a job forms anew [0]");
    flags.parsed("--heal-at", s.faults.until, "TIME", parse_time, duration_forms,
                 "links are perfect from then on [never]");
    const auto straggler = [&s](std::string_view text) -> std::optional<unsigned> {
        const auto parsed = parse_straggler(text);
        if (!parsed) return std::nullopt;
        s.straggler_factor = parsed->factor;
        return parsed->rank;
    };
    flags.parsed("--straggler", s.straggler, "RANK[:FACTOR]", straggler, straggler_forms,
                 "this worker's uplink is that much slower, in every job [factor 100]");
    const auto outage = [](sim::Outage::Kind kind) {
        return [kind](std::string_view text) { return parse_outage(kind, text); };
    };
    flags.appended("--crash", s.faults.outages, "NODE@TIME[+TIME]", outage(sim::Outage::Kind::crash), outage_forms,
                   fmt::format("{}; a switch comes back empty, a worker or server ends the incarnation", outage_forms));
    flags.appended("--pause", s.faults.outages, "NODE@TIME[+TIME]", outage(sim::Outage::Kind::pause), outage_forms,
                   "likewise, but nothing is forgotten");
}

}  // namespace

void add_scenario_flags(CLI::App& command, Scenario& scenario) {
    add_network(command, scenario);
    add_work(command, scenario);
    add_training(command, scenario);
    add_hosts(command, scenario);
    add_protocol(command, scenario);
    add_switchml(command, scenario);
    add_faults(command, scenario);
}

}  // namespace atp::apps
