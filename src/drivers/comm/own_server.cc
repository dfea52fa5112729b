// SPDX-License-Identifier: Apache-2.0
#include "comm/own_server.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "control/address_range.h"
#include "net/resolve.h"

namespace atp::comm {
namespace {

struct PortRange {
    std::string host;
    std::uint16_t first = 0;
    std::uint16_t last = 0;
};

std::optional<std::uint16_t> port_of(std::string_view text) {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return port;
}

// "host:port" or "host:first-last".
std::optional<PortRange> range_of(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos) return std::nullopt;
    const std::string ports = text.substr(colon + 1);
    const std::size_t dash = ports.find('-');
    const auto first = port_of(ports.substr(0, dash));
    const auto last = dash == std::string::npos ? first : port_of(ports.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    return PortRange{.host = text.substr(0, colon), .first = *first, .last = *last};
}

Result<wire::Address> address_at(const std::string& listen, const PortRange& range, std::uint32_t port) {
    const auto address = net::resolve(fmt::format("{}:{}", range.host, port));
    if (!address) return tl::unexpected(address.error());
    if (address->front().is_any()) {
        // errors.md, forms, malformed: `listen` has 0.0.0.0 or [::]
        return fail(Operation::join, Reason::malformed, listen, "other hosts need the address of an interface");
    }
    return address->front();
}

Result<PortRange> range_in(const std::string& listen) {
    if (const auto range = range_of(listen)) return *range;
    return fail(Operation::join, Reason::malformed, listen,
                // errors.md, forms, malformed: `listen` cannot be read
                "name a switch, or an address for this rank: host:port, host:0 or host:first-last");
}

}  // namespace

Result<wire::Address> host_of_listen(const std::string& listen) {
    const auto range = range_in(listen);
    if (!range) return tl::unexpected(range.error());
    return address_at(listen, *range, range->first);
}

Result<std::unique_ptr<switchd::SwitchNode>> serve_at(const std::string& listen, const ServedPart& part) {
    const auto range = range_in(listen);
    if (!range) return tl::unexpected(range.error());
    Result<std::unique_ptr<switchd::SwitchNode>> node = nullptr;
    for (std::uint32_t port = range->first; port <= range->last; ++port) {
        const auto address = address_at(listen, *range, port);
        if (!address) return tl::unexpected(address.error());
        switchd::SwitchNodeConfig config;
        config.udp.local = *address;
        config.memory_bytes = part.memory_bytes;
        config.only = part.job;
        config.indices = part.indices;
        if (part.key != nullptr) config.tenants = control::Tenants::of_one(*part.key);
        // Of this job: its ranks choose whether and where results go by multicast.
        config.groups = *control::parse_ranges("224.0.0.0/4");
        if (part.lanes != 0) config.lanes = static_cast<std::uint16_t>(part.lanes);
        node = switchd::SwitchNode::start(config);
        if (node || node.error().reason != Reason::in_use) break;
    }
    return node;
}

}  // namespace atp::comm
