// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "base/units.h"

namespace atp::sim {
namespace {

// Removes `token` from the front of `text`, if present.
bool take(std::string_view& text, std::string_view token) {
    if (!text.starts_with(token)) return false;
    text.remove_prefix(token.size());
    return true;
}

// Removes a number from the front of `text`.
template <class Number>
std::optional<Number> take_any(std::string_view& text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

std::optional<unsigned> take_number(std::string_view& text) { return take_any<unsigned>(text); }
std::optional<double> take_real(std::string_view& text) { return take_any<double>(text); }

// Parses "AxB" within the limits of a bitmap.
std::optional<std::pair<unsigned, unsigned>> parse_pair(std::string_view text) {
    const auto first = take_number(text);
    if (!first || !take(text, "x")) return std::nullopt;
    const auto second = take_number(text);
    if (!second || !text.empty()) return std::nullopt;
    return std::pair{*first, *second};
}

bool in_range(unsigned value) { return value >= 1 && value <= ATP_BITMAP_BITS; }

}  // namespace

std::optional<TopologySpec> parse_topology(std::string_view text) {
    using Shape = TopologySpec::Shape;
    if (text == "fig9") return TopologySpec{.shape = Shape::fig9, .first = 3, .second = 2};
    if (text == "dumbbell") return TopologySpec{.shape = Shape::dumbbell, .first = 2, .second = 2};
    if (take(text, "star:")) {
        const auto workers = take_number(text);
        if (!workers || !text.empty() || !in_range(*workers)) return std::nullopt;
        return TopologySpec{.shape = Shape::star, .first = *workers, .second = 1};
    }
    const Shape shape = text.starts_with("racks:") ? Shape::racks : Shape::dumbbell;
    if (!take(text, "racks:") && !take(text, "dumbbell:")) return std::nullopt;
    const auto pair = parse_pair(text);
    if (!pair || !in_range(pair->first) || !in_range(pair->second)) return std::nullopt;
    return TopologySpec{.shape = shape, .first = pair->first, .second = pair->second};
}

std::string to_string(const TopologySpec& spec) {
    switch (spec.shape) {
        case TopologySpec::Shape::star: return fmt::format("star:{}", spec.first);
        case TopologySpec::Shape::racks: return fmt::format("racks:{}x{}", spec.first, spec.second);
        case TopologySpec::Shape::dumbbell: return fmt::format("dumbbell:{}x{}", spec.first, spec.second);
        case TopologySpec::Shape::fig9: return "fig9";
    }
    return "unknown";
}

namespace {

std::string_view name_of(Transport transport) { return transport == Transport::tcp ? "tcp" : "rdma"; }

}  // namespace

std::optional<System> parse_system(std::string_view text) {
    using Kind = System::Kind;
    if (text == "atp") return System{};
    if (text == "switchml") return System{.kind = Kind::switchml};
    System system;
    if (take(text, "ps-n")) {
        system.kind = Kind::ps_n;
    } else if (take(text, "ps")) {
        system.kind = Kind::ps;
    } else if (take(text, "ring")) {
        system.kind = Kind::ring;
    } else {
        return std::nullopt;
    }
    if (text == ":tcp") system.transport = Transport::tcp;
    if (text.empty() || text == ":tcp" || text == ":rdma") return system;
    return std::nullopt;
}

std::string to_string(const System& system) {
    switch (system.kind) {
        case System::Kind::atp: return "atp";
        case System::Kind::ps: return fmt::format("ps:{}", name_of(system.transport));
        case System::Kind::ps_n: return fmt::format("ps-n:{}", name_of(system.transport));
        case System::Kind::ring: return fmt::format("ring:{}", name_of(system.transport));
        case System::Kind::switchml: return "switchml";
    }
    return "unknown";
}

std::string to_string(const BackgroundSpec& spec) {
    return fmt::format("w{}:{}:{}", spec.rank, spec.inbound ? "in" : "out", name_of(spec.transport));
}

std::optional<Outage> parse_outage(Outage::Kind kind, std::string_view text) {
    Outage outage{.kind = kind};
    if (take(text, "s")) {
        outage.node = Outage::Node::fabric_switch;
    } else if (take(text, "w")) {
        outage.node = Outage::Node::worker;
    } else if (take(text, "p")) {
        outage.node = Outage::Node::server;
    } else {
        return std::nullopt;
    }
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    (outage.node == Outage::Node::server ? outage.job : outage.index) = *number;
    if (outage.node == Outage::Node::worker && take(text, ".")) {
        outage.job = *number;
        const auto rank = take_number(text);
        if (!rank) return std::nullopt;
        outage.index = *rank;
    }
    if (!take(text, "@")) return std::nullopt;
    const std::size_t plus = text.find('+');
    const auto at = parse_duration(text.substr(0, plus));
    if (!at) return std::nullopt;
    outage.at = Time(*at);
    if (plus == std::string_view::npos) return outage;
    const auto lasts = parse_duration(text.substr(plus + 1));
    if (!lasts) return std::nullopt;
    outage.lasts = *lasts;
    return outage;
}

std::optional<LogNormal> parse_log_normal(std::string_view text) {
    const auto median = take_real(text);
    if (!median || !take(text, ":")) return std::nullopt;
    const auto spread = take_real(text);
    if (!spread || !text.empty() || !(*median > 0) || !(*spread > 0)) return std::nullopt;
    return LogNormal{.median = *median, .spread = *spread};
}

std::optional<Straggler> parse_straggler(std::string_view text) {
    Straggler straggler;
    const auto rank = take_number(text);
    if (!rank) return std::nullopt;
    straggler.rank = *rank;
    if (text.empty()) return straggler;
    if (!take(text, ":")) return std::nullopt;
    const auto factor = take_real(text);
    if (!factor || !text.empty() || !(*factor >= 1)) return std::nullopt;
    straggler.factor = *factor;
    return straggler;
}

std::optional<BackgroundSpec> parse_background(std::string_view text) {
    BackgroundSpec spec;
    if (!take(text, "w")) return std::nullopt;
    const auto rank = take_number(text);
    if (!rank) return std::nullopt;
    spec.rank = *rank;
    spec.inbound = take(text, ":in");
    if (!spec.inbound) (void)take(text, ":out");
    if (take(text, ":rdma")) {
        spec.transport = Transport::rdma;
    } else {
        (void)take(text, ":tcp");
    }
    if (text.empty()) return spec;
    if (!take(text, "@")) return std::nullopt;
    const std::size_t plus = text.find('+');
    const auto start = parse_duration(text.substr(0, plus));
    if (!start) return std::nullopt;
    spec.start = Time(*start);
    if (plus == std::string_view::npos) return spec;
    spec.lasts = parse_duration(text.substr(plus + 1));
    return spec.lasts ? std::optional(spec) : std::nullopt;
}

std::optional<HostCost> parse_host_cost(std::string_view text) {
    const std::size_t at = text.find('@');
    if (at != std::string_view::npos) {
        const auto per_packet = parse_duration(text.substr(0, at));
        const auto rate = parse_rate(text.substr(at + 1));
        if (!per_packet || !rate) return std::nullopt;
        return HostCost{.per_packet = *per_packet, .bits_per_s = *rate};
    }
    if (const auto per_packet = parse_duration(text)) return HostCost{.per_packet = *per_packet};
    if (const auto rate = parse_rate(text)) return HostCost{.bits_per_s = *rate};
    return std::nullopt;
}

std::string to_string(const Outage& outage) {
    std::string node;
    switch (outage.node) {
        case Outage::Node::fabric_switch: node = fmt::format("s{}", outage.index); break;
        case Outage::Node::worker: node = fmt::format("w{}.{}", outage.job, outage.index); break;
        case Outage::Node::server: node = fmt::format("p{}", outage.job); break;
    }
    return fmt::format("{}@{}+{}", node, duration_text(outage.at.time_since_epoch()), duration_text(outage.lasts));
}

std::string to_flag(const BackgroundSpec& spec) {
    const std::string lasts = spec.lasts ? "+" + duration_text(*spec.lasts) : "";
    return fmt::format("{}@{}{}", to_string(spec), duration_text(spec.start.time_since_epoch()), lasts);
}

std::string to_string(const HostCost& cost) {
    if (cost.bits_per_s == 0) return duration_text(cost.per_packet);
    return fmt::format("{}@{}", duration_text(cost.per_packet), cost.bits_per_s);
}

std::string to_string(const Straggler& straggler) { return fmt::format("{}:{}", straggler.rank, straggler.factor); }

std::string log_normal_text(const LogNormal& distribution) {
    return fmt::format("{}:{}", distribution.median, distribution.spread);
}

std::string text_of(const Scenario& scenario) {
    const auto plural = [](std::uint64_t count, std::string_view what) {
        return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
    };
    std::string text = fmt::format("{} of {} in {}", plural(scenario.jobs, "job"),
                                   plural(scenario.workers_of(0), "rank"), to_string(scenario.topology));
    text += fmt::format(", {} of {} bytes in {} on {}", plural(scenario.iterations, "iteration"), scenario.bytes,
                        plural(scenario.tensors, "tensor"), plural(scenario.channels, "channel"));
    text += fmt::format(", {} lanes, window {}, {}", scenario.lanes, 1U << scenario.window_log2,
                        plural(scenario.aggregators, "aggregator"));
    const auto add = [&](bool is_so, const std::string& part) { text += is_so ? ", " + part : ""; };
    add(scenario.server == ServerPlacement::dedicated, "dedicated servers");
    add(scenario.server == ServerPlacement::shared, "servers on one host");
    add(scenario.server == ServerPlacement::colocated, "servers on hosts of workers");
    add(scenario.aggregation == Aggregation::racks, "only racks aggregate");
    add(scenario.aggregation == Aggregation::nowhere, "switches only forward");
    add(scenario.in_path, "switches in the path");
    add(scenario.groups, "results by group");
    add(scenario.keys, "keys");
    add(scenario.placement == Placement::separate && scenario.jobs > 1, "hosts apart");
    add(!scenario.systems.empty(), "SwitchML");
    add(scenario.first_seq != 0, fmt::format("first sequence number {:#x}", scenario.first_seq));
    add(scenario.float_share > 0, fmt::format("{:.0f} % floats", 100 * scenario.float_share));
    add(scenario.overflow_share > 0, fmt::format("{:.0f} % near overflow", 100 * scenario.overflow_share));
    add(scenario.plain_share > 0, fmt::format("{:.0f} % integers", 100 * scenario.plain_share));
    add(scenario.owned_share > 0, fmt::format("{:.0f} % with owners", 100 * scenario.owned_share));
    add(scenario.scaling == tensor::Scaling::dynamic, "dynamic scaling");
    add(scenario.lane_type == tensor::LaneType::int16, "int16");
    add(scenario.lane_type == tensor::LaneType::int8, "int8");
    add(scenario.int32_switch.has_value(), fmt::format("only int32 past s{}", scenario.int32_switch.value_or(0)));
    add(scenario.train > 1, fmt::format("trains of {}", scenario.train));
    add(scenario.paths > 1, plural(scenario.paths, "path"));
    add(scenario.queue_bytes != Scenario{}.queue_bytes, fmt::format("queues of {} bytes", scenario.queue_bytes));
    add(scenario.straggler.has_value(), fmt::format("rank {} slow", scenario.straggler.value_or(0)));
    add(scenario.pause + scenario.stagger + scenario.start_spread != Duration::zero(),
        "pauses between sums and starts");
    const Faults& f = scenario.faults;
    add(f.loss > 0, fmt::format("loss {} %", 100 * f.loss));
    add(f.duplicate > 0, fmt::format("duplicates {} %", 100 * f.duplicate));
    add(f.reorder > 0, fmt::format("{} % late by up to {:.3f} ms", 100 * f.reorder, to_milliseconds(f.reorder_delay)));
    add(f.replay > 0, "packets of the incarnation before");
    add(f.from != Time{}, fmt::format("from {:.3f} ms", to_milliseconds(f.from.time_since_epoch())));
    add(f.until != never, fmt::format("until {:.3f} ms", to_milliseconds(f.until.time_since_epoch())));
    for (const Outage& outage : f.outages) {
        static constexpr std::array verbs{"crash", "pause", "kill", "silence", "leave", "cut", "cut up", "cut down"};
        text += fmt::format(", {} {}", verbs[static_cast<std::size_t>(outage.kind)], to_string(outage));
    }
    if (f.outages.empty()) text += ", no outage";
    return text;
}

}  // namespace atp::sim
