// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/kernel_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "protocol/virtual_queue.h"

namespace atp::apps {
namespace {

constexpr std::string_view blanks = " \t";
constexpr auto least_rate = static_cast<std::int64_t>(ATP_QUEUE_LEAST_RATE);
constexpr auto most_rate = static_cast<std::int64_t>(ATP_QUEUE_MOST_RATE);

// Flags that need --xdp.
constexpr std::array kernel_flags = {"--marks", "--xdp-pins"};

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

std::optional<std::string> first_twice(std::vector<std::string> names) {
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    return twice == names.end() ? std::nullopt : std::optional(*twice);
}

std::optional<std::string> find_rate_misuse(const KernelPartConfig& kernel) {
    std::vector<std::string> names;
    for (const NamedRate& rate : kernel.rates) {
        names.push_back(rate.interface);
        if (rate.interface.empty()) {
            if (!kernel.interfaces.empty()) continue;
            return "--link-rate without --xdp: name the interfaces on which packets are marked, as in eth1=500Mbit, or "
                   "add --xdp INTERFACES";
        }
        if (!kernel.interfaces.empty() &&
            std::ranges::find(kernel.interfaces, rate.interface) == kernel.interfaces.end())
            return fmt::format("--link-rate: --xdp does not list interface '{}'", rate.interface);
    }
    const auto twice = first_twice(std::move(names));
    if (!twice) return std::nullopt;
    return twice->empty() ? "--link-rate: two rates are for all interfaces; name an interface, as in eth1=500Mbit"
                          : fmt::format("--link-rate: interface '{}' has two rates", *twice);
}

template <std::size_t count>
std::optional<std::string> first_given(const std::array<const char*, count>& flags, const Given& given) {
    const auto* const found = std::ranges::find_if(flags, given);
    return found == flags.end() ? std::nullopt : std::optional<std::string>(*found);
}

std::optional<std::string> find_pipeline_misuse(const KernelPartConfig& kernel, const switchd::SwitchNodeConfig& node,
                                                const Given& given) {
    if (kernel.pipeline.empty() != kernel.pipeline_control.empty()) {
        return "--p4 and --p4-control need each other: name the Thrift server of the pipeline, and the interface at "
               "which it delivers control messages";
    }
    if (given("--level") && !kernel.in_path()) {
        return "--level needs --xdp or --p4: add --xdp INTERFACES, or --p4 ADDRESS, or remove --level";
    }
    if (kernel.pipeline.empty()) return std::nullopt;
    if (!kernel.interfaces.empty()) return "--p4 and --xdp exclude each other: start one switch for each";
    if (given("--link-rate")) return "--p4 and --link-rate exclude each other: the pipeline's program marks or not";
    if (given("--memory")) return "--p4 and --memory exclude each other: the pipeline has memory of its own";
    if (node.udp.local.port() == 0)
        return "--p4 and port 0 of --listen exclude each other: set the port to which workers send";
    if (node.shards > 1)
        return "--p4 needs --threads 1: the pipeline aggregates packets of one port, and each thread has its own port";
    return std::nullopt;
}

}  // namespace

std::optional<std::vector<std::string>> parse_interfaces(std::string_view text) {
    std::vector<std::string> names;
    while (true) {
        const std::size_t end = std::min(text.find(','), text.size());
        const std::string_view name = trimmed(text.substr(0, end));
        if (name.empty()) return std::nullopt;
        names.emplace_back(name);
        if (end == text.size()) return names;
        text.remove_prefix(end + 1);
    }
}

std::optional<std::vector<NamedRate>> parse_link_rates(std::string_view text) {
    const auto parts = parse_interfaces(text);
    if (!parts) return std::nullopt;
    std::vector<NamedRate> rates;
    for (const std::string_view part : *parts) {
        const std::size_t equals = part.find('=');
        const bool is_named = equals != std::string_view::npos;
        const auto rate = parse_rate(trimmed(is_named ? part.substr(equals + 1) : part));
        if (!rate || *rate < least_rate || *rate > most_rate) return std::nullopt;
        const std::string_view interface = is_named ? trimmed(part.substr(0, equals)) : std::string_view();
        if (is_named && interface.empty()) return std::nullopt;
        rates.push_back({.interface = std::string(interface), .rate = static_cast<std::uint64_t>(*rate)});
    }
    return rates;
}

std::optional<std::string> find_misuse(const KernelPartConfig& kernel, const switchd::SwitchNodeConfig& node,
                                       const Given& given) {
    if (const auto misuse = find_pipeline_misuse(kernel, node, given)) return misuse;
    if (kernel.interfaces.empty()) {
        const auto alone = first_given(kernel_flags, given);
        return alone ? std::optional(fmt::format("{0} needs --xdp: add --xdp INTERFACES or remove {0}", *alone))
                     : find_rate_misuse(kernel);
    }
    if (const auto twice = first_twice(kernel.interfaces))
        return fmt::format("--xdp: interface '{}' is listed twice; list each interface once", *twice);
    if (auto misuse = find_rate_misuse(kernel)) return misuse;
    if (node.memory_bytes == 0) {
        return "--xdp and --memory 0 exclude each other: set --memory to at least that of the switch that workers "
               "address, or remove --xdp";
    }
    if (node.udp.local.port() == 0) {
        return "--xdp and port 0 of --listen exclude each other: set the port to which workers send";
    }
    if (node.shards > 1) {
        return "--xdp needs --threads 1: the kernel aggregates packets of one port, and each thread has its own port";
    }
    return std::nullopt;
}

}  // namespace atp::apps
