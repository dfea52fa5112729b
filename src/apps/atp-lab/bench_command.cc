// SPDX-License-Identifier: Apache-2.0
#include "apps/atp-lab/bench_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "apps/atp-lab/assignment_flags.h"
#include "apps/atp-lab/model_bench.h"
#include "apps/atp/bench_command.h"
#include "apps/atp/bench_values.h"
#include "apps/common/flags.h"
#include "base/units.h"
#include "comm/communicator.h"
#include "emulation/forwarding_transport.h"
#include "net/udp_socket.h"
#include "switchml_net/rank_group.h"
#include "switchml_net/switch_node.h"

namespace atp::apps {
namespace {

constexpr std::array<std::pair<std::string_view, switchml::Mode>, 3> modes{
    {{"offsets", switchml::Mode::compares_offsets},
     {"faithful", switchml::Mode::faithful},
     {"lossless", switchml::Mode::lossless}}};

// All ranks forward the same fragments.
constexpr std::uint64_t forward_seed = 1;

struct BenchExperiments {
    bool switchml = false;
    switchml::Mode mode = switchml::Mode::compares_offsets;
    Duration resend_after = std::chrono::milliseconds(1);
    bool keep_window = false;
    policy::Assignment assignment;
    std::optional<std::uint32_t> job;
    double forward_share = 0;
    BenchModel trained{};
    std::unique_ptr<switchml_net::SwitchNode> node{};  // the switch for ranks on this host
};

// True for SwitchML.
std::optional<bool> parse_protocol(std::string_view text) {
    if (text == "switchml") return true;
    return text == "atp" ? std::optional(false) : std::nullopt;
}

std::optional<switchml::Mode> parse_mode(std::string_view text) {
    const auto* const found = std::ranges::find(modes, text, &decltype(modes)::value_type::first);
    return found == modes.end() ? std::nullopt : std::optional(found->second);
}

std::string text_of(switchml::Mode mode) {
    return std::string(std::ranges::find(modes, mode, &decltype(modes)::value_type::second)->first);
}

void add_bench_flags(Command& command, BenchExperiments& experiments) {
    Flags flags(command, "Experiments");
    CLI::Option* const protocol = flags.parsed("--protocol", experiments.switchml, "NAME", parse_protocol,
                                               "atp or switchml", "Protocol of the packets [atp]");
    flags
        .parsed("--switchml-mode", experiments.mode, "MODE", parse_mode, "lossless, faithful or offsets",
                "Recovery of losses: none, as printed, or by comparing offsets [offsets]")
        ->needs(protocol);
    flags
        .parsed("--switchml-timeout", experiments.resend_after, "TIME", parse_wait, wait_forms,
                "Time without a result after which a worker sends a packet again [1ms]")
        ->needs(protocol);
    flags.flag("--no-halving", experiments.keep_window,
               "Keep the window on loss and congestion, as in the papers' experiments");
    flags.share("--forward-share", experiments.forward_share,
                "Share of the fragments that switches forward to the server instead of adding them [0]");
    CLI::Option* const job = flags.parsed(
        "--job-number", experiments.job, "N", [](std::string_view text) { return parse_whole(text, 0, UINT32_MAX); },
        whole_forms(0, UINT32_MAX),
        "Number of the job; the rest of its division by that of --partition is its part [drawn at random]");
    add_assignment_flags(flags, experiments.assignment)->needs(job);
    add_model_flags(command, experiments.trained);
}

Result<BenchSize> measure_tensor(const BenchRank& bench, store::Rendezvous& rendezvous, std::size_t number,
                                 switchml_net::RankGroup& group) {
    const BenchValues values(bench.options, bench.type, bench.magnitude, bench.rank, bench.world);
    const std::uint64_t bytes = bench.sizes[number];
    std::vector<std::byte> in(bytes);
    std::vector<std::byte> out(bytes);
    values.fill(bench.rank, 0, in);
    return measure_rounds(
        bench, rendezvous, number, bytes,
        {.barrier = [&] { return group.barrier(); },
         .clear = [&] { std::ranges::fill(out, std::byte{0xEE}); },
         .run = [&] { return group.all_reduce(in.data(), out.data(), bytes / values.element_bytes(), bench.type); },
         .wrong = [&] { return values.wrong_sum(0, out); }});
}

// An operation of SwitchML blocks, so the thread that waits for the sums runs it.
BucketSum sum_when_waited(switchml_net::RankGroup& group, const BenchRank& bench) {
    return [&](void* memory, std::size_t elements) -> Result<workload::TrainingCalls::Wait> {
        return [&group, &bench, memory, elements] { return group.all_reduce(memory, memory, elements, bench.type); };
    };
}

// Many operations of ATP may be in flight.
BucketSum sum_at_once(comm::Communicator& communicator, const BenchRank& bench) {
    return [&](void* memory, std::size_t elements) -> Result<workload::TrainingCalls::Wait> {
        const auto work = communicator.all_reduce({memory, memory, elements}, bench.type, comm::Reduction::sum);
        if (!work) return tl::unexpected(work.error());
        return [handle = *work] { return handle->wait(); };
    };
}

// One rank over SwitchML.
Result<void> take_part(const BenchRank& bench, const BenchExperiments& experiments, store::Store& store,
                       Interruption& interruption, const BenchMeasured& measured) {
    if (bench.collective != Collective::all_reduce) {
        return fail(Operation::parse, Reason::unsupported, {}, "SwitchML has no collective but all_reduce");
    }
    store::Rendezvous rendezvous(store,
                                 {.prefix = bench.options.name + "-bench", .rank = bench.rank, .world = bench.world});
    const auto group = switchml_net::RankGroup::form(
        rendezvous, {.options = bench.options, .mode = experiments.mode, .resend_after = experiments.resend_after});
    if (!group) return tl::unexpected(group.error());
    const auto leaves_job = interruption.ends([&] { (*group)->abort(); });
    switchml::WorkerCounters before;
    for (std::size_t number = 0; number < bench.sizes.size(); ++number) {
        auto result =
            experiments.trained.model != nullptr
                ? measure_model(bench, rendezvous, experiments.trained.workload(), sum_when_waited(**group, bench))
                : measure_tensor(bench, rendezvous, number, **group);
        if (!result) return tl::unexpected(result.error());
        const switchml::WorkerCounters counted = (*group)->counters();
        result->counters = {.packets = counted.sent + counted.resent - before.sent - before.resent,
                            .resent = counted.resent - before.resent,
                            .stale_acks = counted.stale_results - before.stale_results};
        before = counted;
        result->lanes = (*group)->config().job.lanes;
        result->window = (*group)->config().job.slots();
        if (bench.rank == 0) measured(*result);
    }
    return (*group)->close();
}

void complete_bench(const BenchExperiments& experiments, BenchRank& bench) {
    comm::Options& options = bench.options;
    options.indices = rule_of(experiments.assignment);
    options.job = experiments.job;
    const bool forwards = experiments.forward_share > 0;
    const bool concerns_packets = experiments.keep_window || experiments.switchml || options.indices || forwards;
    if (concerns_packets) options.host_level = false;
    if (experiments.keep_window) options.congestion.least_packets = UINT32_MAX;
    if (forwards) {
        const policy::ForwardedShare share(experiments.forward_share, forward_seed);
        options.open_transport = [share](const net::UdpConfig& udp) -> Result<std::unique_ptr<net::Transport>> {
            auto socket = net::UdpSocket::open(udp);
            if (!socket) return tl::unexpected(socket.error());
            return std::make_unique<emulation::ForwardingTransport>(*std::move(socket), share);
        };
    }
    if (experiments.trained.model != nullptr) {
        bench.sizes = {experiments.trained.workload().elements() * numeric::bytes_of(bench.type)};
        bench.measure = [&experiments](const BenchRank& rank, comm::Communicator& communicator,
                                       store::Rendezvous& rendezvous) {
            return measure_model(rank, rendezvous, experiments.trained.workload(), sum_at_once(communicator, rank));
        };
    }
    if (!experiments.switchml) return;
    bench.system = "switchml";
    options.scaling = tensor::Scaling::fixed;  // SwitchML has no other
    bench.take_part = [&experiments](const BenchRank& rank, store::Store& store, Interruption& interruption,
                                     const BenchMeasured& measured) {
        return take_part(rank, experiments, store, interruption, measured);
    };
}

std::vector<std::string> flags_of(const BenchExperiments& experiments) {
    std::vector<std::string> flags = flags_of(experiments.trained);
    if (experiments.switchml) {
        flags.insert(flags.end(), {"--protocol", "switchml", "--switchml-mode", text_of(experiments.mode),
                                   "--switchml-timeout", duration_text(experiments.resend_after)});
    }
    if (experiments.keep_window) flags.emplace_back("--no-halving");
    if (experiments.forward_share > 0) {
        flags.insert(flags.end(), {"--forward-share", fmt::format("{}", experiments.forward_share)});
    }
    if (experiments.job) flags.insert(flags.end(), {"--job-number", std::to_string(*experiments.job)});
    std::ranges::move(flags_of_assignment(experiments.assignment), std::back_inserter(flags));
    return flags;
}

Result<std::string> start_switch(BenchExperiments& experiments, const switchd::SwitchNodeConfig& config) {
    if (!experiments.switchml) return std::string();
    auto node = switchml_net::SwitchNode::start(config);
    if (!node) return tl::unexpected(node.error());
    experiments.node = *std::move(node);
    return to_string(experiments.node->address());
}

}  // namespace

std::function<int()> register_lab_bench(CLI::App& program) {
    auto experiments = std::make_shared<BenchExperiments>();
    return add_bench(program, {.add_flags = [experiments](Command& command) { add_bench_flags(command, *experiments); },
                               .complete = [experiments](BenchRank& bench) { complete_bench(*experiments, bench); },
                               .flags_of_ranks = [experiments] { return flags_of(*experiments); },
                               .start_switch =
                                   [experiments](const switchd::SwitchNodeConfig& config) {
                                       return start_switch(*experiments, config);
                                   }});
}

}  // namespace atp::apps
