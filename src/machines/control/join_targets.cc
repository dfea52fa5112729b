// SPDX-License-Identifier: Apache-2.0
// To which addresses a JOIN may make a switch send.
#include <fmt/format.h>

#include "control/group_range.h"
#include "control/join_tree.h"
#include "wire/bytes.h"

namespace atp::control {
inline namespace ATP_VARIANT {

std::optional<JoinTree::Objection> JoinTree::objection_to_targets(const wire::Join& join, const wire::Address& from,
                                                                  const Tenant* tenant) const {
    if (join.level == ATP_LEVELS) return std::nullopt;
    const wire::ChannelTerms& terms = join.terms;
    const bool ends_here = join.level != 0 || terms.has_single_unit();
    const wire::Endpoint& above = ends_here ? terms.server : terms.root;
    if (above.family != 0) {
        if (auto objection = objection_to_named(address_of(above), from, tenant)) return objection;
    }
    if (!ends_here || terms.group.family == 0) return std::nullopt;
    return objection_to_group(address_of(terms.group), tenant);
}

std::optional<JoinTree::Objection> JoinTree::objection_to_named(const wire::Address& named, const wire::Address& from,
                                                                const Tenant* tenant) const {
    constexpr std::uint32_t broadcast = 0xFFFFFFFF;
    const wire::Endpoint endpoint = endpoint_of(named);
    const bool is_broadcast = endpoint.family == 4 && wire::load_u32(endpoint.host.data()) == broadcast;
    if (named.is_any() || named.is_multicast() || is_broadcast || named.port() == 0 || named == config_.self) {
        return Objection{
            wire::Refusal::unsupported,
            // errors.md, refused: `server` or the root of the job is no host, or this switch itself
            fmt::format("no job may name {} as its server or root: name another host and its port", to_string(named))};
    }
    // On this host. Only its own processes may let the switch send there.
    if (named.is_loopback() && !from.is_loopback()) {
        return Objection{
            wire::Refusal::unsupported,
            // errors.md, refused: a rank serves sums at the loopback address, which means another host to the switch
            fmt::format("{} is this switch's own host: name the server by the address of an interface",
                        to_string(named))};
    }
    if (tenant != nullptr && !tenant->servers.empty()) {
        if (contain(tenant->servers, named)) return std::nullopt;
        return Objection{wire::Refusal::unsupported,
                         fmt::format(
                             // errors.md, refused: the tenants file of the switch limits your team
                             "tenant {} may not name {} as its server or root: have the switch's operator add it to "
                             "servers",
                             tenant->name, to_string(named))};
    }
    if (config_.servers.empty() || contain(config_.servers, named)) return std::nullopt;
    return Objection{wire::Refusal::unsupported,
                     // errors.md, refused: the switch runs with `--servers`
                     fmt::format("this switch serves no job with its server or root at {}: restart it with --servers "
                                 "that contain this address",
                                 to_string(named))};
}

std::optional<JoinTree::Objection> JoinTree::objection_to_group(const wire::Address& group,
                                                                const Tenant* tenant) const {
    if (tenant != nullptr && !tenant->groups.empty()) {
        if (group.port() == Multicast::port && contain(tenant->groups, group)) return std::nullopt;
        return Objection{wire::Refusal::unsupported,
                         fmt::format(
                             // errors.md, refused: the tenants file of the switch limits your team
                             "tenant {} may not have results sent to the group {}: turn multicast off, or have the "
                             "switch's operator add it to groups",
                             tenant->name, to_string(group))};
    }
    if (group.port() == Multicast::port && contain(config_.groups, group)) return std::nullopt;
    return Objection{wire::Refusal::unsupported,
                     // errors.md, refused: results by multicast need a switch with `--groups`
                     fmt::format("this switch sends nothing to the group {}: restart it with --groups that contain "
                                 "this address and port {}, or turn multicast off",
                                 to_string(group), Multicast::port)};
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
