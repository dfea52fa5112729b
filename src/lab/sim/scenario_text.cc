// SPDX-License-Identifier: Apache-2.0
// Conversion of topologies and systems from and to text.
#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "sim/scenario.h"

namespace atp::sim {
namespace {

// Removes `token` from the front of `text`, if present.
bool take(std::string_view& text, std::string_view token) {
    if (!text.starts_with(token)) return false;
    text.remove_prefix(token.size());
    return true;
}

std::optional<unsigned> take_number(std::string_view& text) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

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

}  // namespace atp::sim
