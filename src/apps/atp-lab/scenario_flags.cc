// SPDX-License-Identifier: Apache-2.0
#include "apps/atp-lab/scenario_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <utility>

#include "apps/common/value_texts.h"

namespace atp::apps {
namespace {

using sim::Aggregation;
using sim::Outage;
using sim::Placement;
using sim::Scenario;
using sim::ServerPlace;

// Removes `token` from the front of `text`.
bool take(std::string_view& text, std::string_view token) {
    if (!text.starts_with(token)) return false;
    text.remove_prefix(token.size());
    return true;
}

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

}  // namespace

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

std::optional<sim::BackgroundSpec> parse_background(std::string_view text) {
    sim::BackgroundSpec spec;
    if (!take(text, "w")) return std::nullopt;
    const auto rank = take_number(text);
    if (!rank) return std::nullopt;
    spec.rank = *rank;
    spec.inbound = take(text, ":in");
    if (!spec.inbound) (void)take(text, ":out");
    if (take(text, ":rdma")) {
        spec.transport = sim::Transport::rdma;
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

std::optional<sim::HostCost> parse_host_cost(std::string_view text) {
    const std::size_t at = text.find('@');
    if (at != std::string_view::npos) {
        const auto per_packet = parse_duration(text.substr(0, at));
        const auto rate = parse_rate(text.substr(at + 1));
        if (!per_packet || !rate) return std::nullopt;
        return sim::HostCost{.per_packet = *per_packet, .bits_per_s = *rate};
    }
    if (const auto per_packet = parse_duration(text)) return sim::HostCost{.per_packet = *per_packet};
    if (const auto rate = parse_rate(text)) return sim::HostCost{.bits_per_s = *rate};
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

namespace {

// Appends a flag if its value differs from the default.
class FlagWriter {
  public:
    template <class T>
    void number(std::string_view flag, const T& value, const T& usual) {
        if (value != usual) text_ += fmt::format(" {} {}", flag, value);
    }
    void duration(std::string_view flag, Duration value, Duration usual) {
        if (value != usual) text_ += fmt::format(" {} {}", flag, duration_text(value));
    }
    void word(std::string_view flag, std::string_view value, bool wanted) {
        if (wanted) text_ += fmt::format(" {}{}{}", flag, value.empty() ? "" : " ", value);
    }
    [[nodiscard]] std::string text() && { return std::move(text_); }

  private:
    std::string text_;
};

std::string_view name_of(ServerPlace place) {
    switch (place) {
        case ServerPlace::on_switch: return "switch";
        case ServerPlace::dedicated: return "dedicated";
        case ServerPlace::shared: return "shared";
        case ServerPlace::colocated: return "colocated";
    }
    return "unknown";
}

void write_network(const Scenario& s, const Scenario& usual, FlagWriter& out) {
    out.word("--server", name_of(s.server), s.server != ServerPlace::on_switch);
    out.word("--aggregation", s.aggregation == Aggregation::racks ? "racks" : "nowhere",
             s.aggregation != Aggregation::everywhere);
    out.word("--placement", "separate", s.placement == Placement::separate);
    out.number("--rate", s.rate_bits_per_s, usual.rate_bits_per_s);
    out.duration("--delay", s.delay, usual.delay);
    out.number("--queue", s.queue_bytes, usual.queue_bytes);
    out.number("--ecn", s.ecn_bytes, usual.ecn_bytes);
    out.number("--spray", s.paths, usual.paths);
    out.duration("--spray-skew", s.path_skew, usual.path_skew);
    out.number("--overhead", s.overhead_bytes, usual.overhead_bytes);
}

std::string cost_text(const sim::HostCost& cost) {
    if (cost.bits_per_s == 0) return duration_text(cost.per_packet);
    return fmt::format("{}@{}", duration_text(cost.per_packet), cost.bits_per_s);
}

void write_work(const Scenario& s, const Scenario& usual, FlagWriter& out) {
    out.number("--jobs", s.jobs, usual.jobs);
    out.word("--job-workers", fmt::format("{}", fmt::join(s.job_workers, ",")), !s.job_workers.empty());
    out.number("--channels", s.channels, usual.channels);
    out.number("--bytes", s.bytes, usual.bytes);
    out.number("--tensors", s.tensors, usual.tensors);
    out.number("--iterations", s.iterations, usual.iterations);
    out.duration("--off-phase", s.pause, usual.pause);
    for (const sim::System& system : s.systems) out.word("--system", to_string(system), true);
    out.duration("--stagger", s.stagger, usual.stagger);
    out.duration("--arrivals", s.mean_gap, usual.mean_gap);
    out.number("--first-job", s.first_job, usual.first_job);
    for (const std::string& model : s.models) out.word("--model", model, true);
    if (s.batch) out.number("--batch", *s.batch, 0U);
    out.number("--scale", s.scale, usual.scale);
    out.number("--bucket", s.bucket_bytes, usual.bucket_bytes);
    out.word("--priority", "", s.priority);
}

void write_hosts(const Scenario& s, const Scenario& usual, FlagWriter& out) {
    out.word("--host-cost", cost_text(s.host_cost), s.host_cost != usual.host_cost);
    out.word("--tcp-cost", cost_text(s.tcp_cost), s.tcp_cost != usual.tcp_cost);
    out.word("--rdma-cost", cost_text(s.rdma_cost), s.rdma_cost != usual.rdma_cost);
    for (const sim::BackgroundSpec& flow : s.background) {
        const std::string lasts = flow.lasts ? "+" + duration_text(*flow.lasts) : "";
        const std::string start = duration_text(flow.start.time_since_epoch());
        out.word("--background", fmt::format("{}@{}{}", to_string(flow), start, lasts), true);
    }
    if (s.sample) out.duration("--sample", *s.sample, Duration(-1));
}

void write_protocol(const Scenario& s, const Scenario& usual, FlagWriter& out) {
    out.number("--lanes", s.lanes, usual.lanes);
    out.number("--window", 1U << s.window_log2, 1U << usual.window_log2);
    out.word("--no-audit", "", !s.audit);
    out.number("--first-seq", s.first_seq, usual.first_seq);
    out.number("--aggregators", s.aggregators, usual.aggregators);
    out.word("--linear", "", s.linear);
    out.word("--partition", "", s.partition);
    out.word("--proactive", "", s.proactive);
    out.number("--forward-share", s.forward_share, usual.forward_share);
    out.duration("--ageing", s.ageing, usual.ageing);
    out.number("--initial-window", s.initial_packets, usual.initial_packets);
    out.word("--no-congestion-control", "", !s.congestion_control);
    out.word("--blind-resend", "", s.blind_resend);
    out.duration("--min-timeout", s.min_timeout, usual.min_timeout);
    out.duration("--max-timeout", s.max_timeout, usual.max_timeout);
}

std::string_view mode_text(switchml::Mode mode) {
    using switchml::Mode;
    if (mode == Mode::compares_offsets) return "offsets";
    return mode == Mode::lossless ? "lossless" : "faithful";
}

void write_switchml(const sim::SwitchmlSpec& spec, const sim::SwitchmlSpec& usual, FlagWriter& out) {
    out.number("--pool", spec.pool, usual.pool);
    out.number("--switchml-lanes", spec.lanes, usual.lanes);
    out.word("--switchml-halves", "", spec.halves);
    out.word("--switchml-mode", mode_text(spec.mode), spec.mode != usual.mode);
    out.duration("--switchml-timeout", spec.timeout, usual.timeout);
}

void write_faults(const Scenario& s, const Scenario& usual, FlagWriter& out) {
    out.number("--float-share", s.float_share, usual.float_share);
    out.number("--overflow-share", s.overflow_share, usual.overflow_share);
    out.number("--plain-share", s.plain_share, usual.plain_share);
    if (s.gradients) out.word("--gradients", fmt::format("{}:{}", s.gradients->median, s.gradients->spread), true);
    if (s.straggler) out.word("--straggler", fmt::format("{}:{}", *s.straggler, s.straggler_factor), true);
    out.number("--loss", s.faults.loss, usual.faults.loss);
    if (s.faults.lossy_worker) out.word("--lossy-worker", fmt::format("{}", *s.faults.lossy_worker), true);
    out.number("--duplicate", s.faults.duplicate, usual.faults.duplicate);
    out.number("--reorder", s.faults.reorder, usual.faults.reorder);
    out.duration("--reorder-delay", s.faults.reorder_delay, usual.faults.reorder_delay);
    out.number("--replay", s.faults.replay, usual.faults.replay);
    if (s.faults.until != never) out.duration("--heal-at", s.faults.until.time_since_epoch(), Duration(-1));
    for (const Outage& outage : s.faults.outages) {
        out.word(outage.kind == Outage::Kind::crash ? "--crash" : "--pause", to_string(outage), true);
    }
    if (s.deadline) out.duration("--deadline", *s.deadline, Duration(-1));
    out.duration("--time-limit", s.time_limit.time_since_epoch(), usual.time_limit.time_since_epoch());
}

}  // namespace

std::string to_flags(const Scenario& s) {
    const Scenario usual;
    FlagWriter out;
    write_network(s, usual, out);
    write_work(s, usual, out);
    write_hosts(s, usual, out);
    write_protocol(s, usual, out);
    write_switchml(s.switchml, usual.switchml, out);
    write_faults(s, usual, out);
    return fmt::format("--topology {}{} --seed {}", to_string(s.topology), std::move(out).text(), s.seed);
}

}  // namespace atp::apps
