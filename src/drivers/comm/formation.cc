// SPDX-License-Identifier: Apache-2.0
#include "comm/formation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>
#include <sstream>
#include <thread>

#include "base/dissent.h"
#include "client/switch_client.h"
#include "comm/layout_formation.h"
#include "comm/option_table.h"
#include "comm/switch_reach.h"
#include "control/announcement.h"
#include "control/join_tree.h"
#include "control/placement.h"
#include "net/clock.h"
#include "net/local_route.h"
#include "net/random.h"
#include "net/resolve.h"
#include "net/udp_socket.h"

namespace atp::comm {
namespace {

// A switch detects within a second that its parent changed. Until then, ranks may see different trees.
constexpr std::size_t placing_attempts = 5;
constexpr Duration placing_pause = std::chrono::milliseconds(400);

constexpr std::size_t host_names = 3;
constexpr std::size_t member_names = 4;
constexpr std::size_t layout_at = host_names + member_names;
constexpr std::size_t announcement_at = layout_at + 1;
constexpr std::size_t roots_at = announcement_at + placing_attempts + 1;
constexpr std::array<std::string_view, roots_at + 3> names{
    "host",           "host-connected", "host-shared",    "members",        "members-connected",
    "members-shared", "members-formed", "layout",         "announcement-0", "announcement-1",
    "announcement-2", "announcement-3", "announcement-4", "decision",       "roots",
    "roots-reached",  "leaves"};
// A channel has a thread on each rank.
constexpr std::uint32_t most_channels = 64;
constexpr std::uint32_t least_window = 8;
// Servers on hosts share their links with gradients, so that results come in bursts. A shorter timer mostly asks for
// fragments that other workers have still in their queues.
constexpr Duration timeout_on_hosts = std::chrono::milliseconds(50);

Failure refuse(Operation operation, Reason reason, std::string peer, std::string text) {
    return fail(operation, reason, std::move(peer), std::move(text));
}

net::UdpConfig udp_config_of(const Options& options, const wire::Address& local) {
    return {.local = local,
            .mmsg = options.mmsg,
            .gso = options.gso,
            .gro = options.gro,
            .receive_buffer_bytes = options.socket_buffer_bytes,
            .send_buffer_bytes = options.socket_buffer_bytes,
            .busy_poll_us = options.busy_poll_us};
}

Result<std::vector<std::unique_ptr<net::Transport>>> open_sockets(const Options& options, std::uint32_t count,
                                                                  const wire::Address& towards) {
    const auto local = net::local_address_towards(towards);
    if (!local) return tl::unexpected(local.error());
    net::UdpConfig config = udp_config_of(options, *local);
    config.reports_errors = true;
    std::vector<std::unique_ptr<net::Transport>> sockets;
    for (std::uint32_t channel = 0; channel < count; ++channel) {
        auto socket = net::UdpSocket::open(config);
        if (!socket) return tl::unexpected(socket.error());
        sockets.push_back(*std::move(socket));
    }
    return sockets;
}

Result<std::vector<control::Announcement>> exchange_announcements(store::Rendezvous& rendezvous, std::size_t attempt,
                                                                  const control::Announcement& own, Time deadline) {
    const auto texts = rendezvous.all_gather(names[announcement_at + attempt], control::to_text(own), deadline);
    if (!texts) return tl::unexpected(texts.error());
    std::vector<control::Announcement> announcements;
    std::vector<std::string> terms;
    for (std::size_t rank = 0; rank < texts->size(); ++rank) {
        auto announcement = control::announcement_from((*texts)[rank], static_cast<std::uint32_t>(rank));
        if (!announcement) return tl::unexpected(announcement.error());
        terms.push_back(announcement->terms);
        announcements.push_back(*std::move(announcement));
    }
    if (auto failure = dissent_about_terms(terms)) return *std::move(failure);
    return announcements;
}

using Membership = std::shared_ptr<const protocol::Membership>;

struct Placed {
    std::vector<control::Announcement> announcements;
    std::vector<Membership> memberships;  // by share of the channels
};

// Each share has its own servers, and so its own units.
Result<Placed> place_shares(std::vector<control::Announcement> announcements, const FormedLayout& layout) {
    Placed placed{.announcements = std::move(announcements), .memberships = {}};
    for (const control::LayoutShare& share : layout.layout.shares) {
        auto membership = control::place_ranks_of(share, placed.announcements);
        if (!membership) return tl::unexpected(membership.error());
        placed.memberships.push_back(std::make_shared<const protocol::Membership>(*std::move(membership)));
    }
    return placed;
}

// All ranks see the same announcements, so either all of them try again or none does.
Result<Placed> find_places(store::Rendezvous& rendezvous, control::Announcement& own, const FormedLayout& layout,
                           Time deadline) {
    for (std::size_t attempt = 0;; ++attempt) {
        auto announcements = exchange_announcements(rendezvous, attempt, own, deadline);
        if (!announcements) return tl::unexpected(announcements.error());
        if (layout.has_servers()) return place_shares(*std::move(announcements), layout);
        auto membership = control::place_ranks(*announcements);
        if (membership) {
            return Placed{*std::move(announcements),
                          {std::make_shared<const protocol::Membership>(*std::move(membership))}};
        }
        const bool hopeless = membership.error().reason != Reason::mismatched;
        if (hopeless || attempt + 1 == placing_attempts) return tl::unexpected(membership.error());
        std::this_thread::sleep_for(placing_pause);
        auto client = client::SwitchClient::open(layout.reach.address);
        if (!client) return tl::unexpected(client.error());
        auto welcome = greet(**client, deadline);
        if (!welcome) return tl::unexpected(welcome.error());
        own.path = std::move(welcome->path);
    }
}

Result<control::Decision> decide(store::Rendezvous& rendezvous, Time deadline) {
    control::Decision drawn{.job = static_cast<std::uint32_t>(net::random_bits()), .token = 0};
    while (drawn.token == 0) drawn.token = net::random_bits();
    const auto text = rendezvous.broadcast_from_zero(names[roots_at - 1], control::to_text(drawn), deadline);
    if (!text) return tl::unexpected(text.error());
    return control::decision_from(*text);
}

// The smallest table and the shortest packets on the paths of all ranks.
Formation formation_of(const Options& options, const std::vector<control::Announcement>& announcements) {
    Formation formation{.channels = options.channels, .lanes = ATP_MAX_LANES, .aggregators = UINT32_MAX};
    for (const control::Announcement& announcement : announcements) {
        formation.lanes = std::min(formation.lanes, announcement.lanes);
        for (const wire::PathSwitch& next : announcement.path) {
            // A switch without memory sets no limit: it forwards everything, or refuses the JOIN.
            if (next.aggregators == 0) continue;
            formation.aggregators = std::min(formation.aggregators, next.aggregators);
            formation.lanes = std::min<std::uint32_t>(formation.lanes, next.lanes);
        }
    }
    if (formation.aggregators == UINT32_MAX) formation.aggregators = 1;
    if (options.lanes != 0) formation.lanes = options.lanes;
    formation.window = options.window != 0 ? options.window : protocol::usual_window(formation.lanes);
    return formation;
}

Result<wire::Endpoint> server_of(const Options& options, std::uint32_t channel,
                                 const std::vector<control::Announcement>& announcements) {
    std::string text;
    if (options.server == ServerPlace::colocated) {
        text = announcements[channel % announcements.size()].servers.at(channel);
    } else if (options.server != ServerPlace::dedicated) {
        return wire::Endpoint{};
    } else {
        if (options.dedicated_servers.empty()) {
            return refuse(Operation::join, Reason::malformed, {},
                          "the list of dedicated servers is empty: use one or more host:port");
        }
        text = options.dedicated_servers[channel % options.dedicated_servers.size()];
    }
    const auto addresses = net::resolve(text);
    if (!addresses) return tl::unexpected(addresses.error());
    return control::endpoint_of(addresses->front());
}

ChannelPlan plan_of(std::uint32_t number, std::uint32_t rank, const Options& options, const Formation& formation,
                    const control::Decision& decision, const Membership& membership, const wire::Endpoint& server) {
    const auto rank16 = static_cast<std::uint16_t>(rank);
    const protocol::Place& place = membership->place(rank16);
    ChannelPlan plan;
    endpoint::ChannelMachineConfig& machine = plan.machine;
    machine.terms = {.job = decision.job,
                     .token = decision.token,
                     .channel = static_cast<std::uint16_t>(number),
                     .lanes = static_cast<std::uint16_t>(formation.lanes),
                     .window_log2 = static_cast<std::uint8_t>(std::countr_zero(formation.window)),
                     .audit = options.audit,
                     .aggregators = formation.aggregators,
                     .first_seq = 0,
                     .mask1 = membership->all_units(),
                     .scale = options.scale,
                     .server = server,
                     .group = control::group_of(options.multicast, decision.job, decision.token,
                                                static_cast<std::uint16_t>(number))};
    machine.unit = {.unit = place.unit,
                    .members = 1U << place.member,
                    .mask0 = place.mask0,
                    .direct = membership->unit(place.unit).direct,
                    .ranks = {rank16}};
    machine.level = place.hop;
    machine.worker.channel = endpoint::channel_config(machine.terms);
    machine.worker.rank = rank16;
    machine.worker.place = place;
    machine.worker.senders = protocol::SenderMasks(*membership, rank16);
    machine.worker.scale = options.scale;
    machine.worker.bypass_above = protocol::bounded_magnitude(membership->workers());
    machine.worker.congestion = options.congestion;
    const std::size_t packet_bytes = ATP_HEADER_BYTES + std::size_t{machine.worker.channel.lanes} * ATP_LANE_BYTES;
    machine.worker.train = static_cast<std::uint32_t>(net::UdpSender::most_message_bytes / packet_bytes);
    machine.membership = membership;
    if (options.server == ServerPlace::colocated) {
        machine.server_rank = static_cast<std::uint16_t>(number % membership->workers());
    }
    machine.hosts_server = machine.server_rank == rank;
    machine.nonce = net::random_bits();
    machine.secret = net::random_secret();
    plan.loop.spin = options.spin;
    if (!options.cores.empty()) plan.loop.core = options.cores[number % options.cores.size()];
    return plan;
}

// A channel receives its group on the interface of the path to its switch.
net::UdpConfig group_config_of(const Options& options, const ChannelPlan& plan, const net::Transport& socket) {
    net::UdpConfig config = udp_config_of(options, control::address_of(plan.machine.terms.group));
    config.member_at = socket.local();
    return config;
}

std::uint32_t channels_of(const Options& options, std::size_t roots) {
    const auto count = static_cast<std::uint32_t>(roots);
    return std::max(count, std::min(options.channels * count, most_channels / count * count));
}

// If servers on several hosts send to each host at once, their windows share what one switch would have.
std::uint32_t window_beside(std::size_t servers, std::uint32_t window) {
    const std::uint32_t share = window / std::bit_ceil(static_cast<std::uint32_t>(servers));
    return std::max(share, std::min(window, least_window));
}

}  // namespace

std::span<const std::string_view> names_of_formation() { return names; }
std::span<const std::string_view> names_of_host_level() { return std::span(names).first(host_names); }
std::span<const std::string_view> names_of_members() { return std::span(names).subspan(host_names, member_names); }
std::span<const std::string_view> names_of_network() { return std::span(names).subspan(layout_at); }
std::span<const std::string_view> names_of_members_and_network() { return std::span(names).subspan(host_names); }
std::span<const std::string_view> names_of_roots() { return std::span(names).subspan(roots_at); }

std::optional<Failure> dissent_about_terms(std::span<const std::string> terms) {
    const auto dissent = dissent_of(terms);
    if (!dissent) return std::nullopt;
    return refuse(
        Operation::rendezvous, Reason::mismatched, fmt::format("rank {}", dissent->rank),
        fmt::format("rank {} has the options \"{}\", the others \"{}\": use equal options on all ranks", dissent->rank,
                    words_only_in(dissent->own, dissent->others), words_only_in(dissent->others, dissent->own)));
}

// The words of a formation, in the order of its members.
Result<Formation> spread_formation(store::Rendezvous& rendezvous, std::string_view name, const Formation& formed,
                                   std::uint32_t speaker, Time deadline) {
    const std::string own = fmt::format("{} {} {} {} {} {} {} {}", formed.job, formed.channels, formed.lanes,
                                        formed.window, formed.aggregators, formed.units, formed.levels, formed.layout);
    const auto texts = rendezvous.all_gather(name, own, deadline);
    if (!texts) return tl::unexpected(texts.error());
    Formation read;
    std::istringstream words((*texts)[speaker]);
    words >> read.job >> read.channels >> read.lanes >> read.window >> read.aggregators >> read.units >> read.levels >>
        read.layout;
    if (!words) {
        return refuse(Operation::rendezvous, Reason::malformed, fmt::format("rank {}", speaker),
                      "its formation cannot be read: use equal versions on all ranks");
    }
    return read;
}

Result<Formed> find_each_other(store::Rendezvous& rendezvous, const Options& given,
                               std::span<const std::vector<std::uint16_t>> ranks_of_workers, Time deadline) {
    auto layout = agree_on_layout(rendezvous, given, deadline);
    if (!layout) return tl::unexpected(layout.error());
    Options options = given;
    options.channels = channels_of(given, layout->shares.size());
    Formed formed;
    formed.nodes = std::move(layout->nodes);
    formed.layout = layout->text;
    // Where a rank speaks for others, one operation at a time passes through the memory of its host.
    const bool gathers = ranks_of_workers.empty();
    const std::uint32_t plans = options.channels * (gathers ? 2 : 1);
    auto sockets = open_sockets(options, plans, layout->shares.front().switch_address);
    if (!sockets) return tl::unexpected(sockets.error());
    formed.sockets = *std::move(sockets);

    control::Announcement own{.path = layout->path,
                              .lanes = layout->lanes,
                              .terms = agreed_text(given),
                              .rack = options.rack,
                              .servers = {},
                              .hosts_switch = options.hosts_switch};
    for (const auto& socket : formed.sockets) own.servers.push_back(to_string(socket->local()));
    auto placed = find_places(rendezvous, own, *layout, deadline);
    if (!placed) return tl::unexpected(placed.error());
    const auto decision = decide(rendezvous, deadline);
    if (!decision) return tl::unexpected(decision.error());

    const std::vector<control::Announcement>& announcements = placed->announcements;
    const Membership& first = placed->memberships.front();
    formed.formation = formation_of(options, announcements);
    if (options.window == 0) {
        formed.formation.window = window_beside(layout->shares.size(), formed.formation.window);
    }
    formed.formation.job = decision->job;
    formed.formation.layout = control::to_string(layout->layout.kind);
    formed.formation.units = first->units();
    formed.formation.levels = first->units() == 1 ? 1 : 2;
    for (std::uint32_t channel = 0; channel < plans; ++channel) {
        const auto server = server_of(options, channel, announcements);
        if (!server) return tl::unexpected(server.error());
        const std::size_t number = channel % layout->shares.size();
        const ShareOfRank& share = layout->shares[number];
        formed.plans.push_back(plan_of(channel, rendezvous.party().rank, options, formed.formation, *decision,
                                       placed->memberships[number], *server));
        ChannelPlan& plan = formed.plans.back();
        // As many threads as the option says: the shares divide the work of one.
        plan.thread = channel % options.channels / layout->shares.size();
        plan.machine.switch_address = share.switch_address;
        plan.machine.switch_rank = share.switch_rank;
        plan.machine.root_rank = share.root_rank;
        // A rank behind a switch in the path addresses the last switch.
        if (share.in_path) plan.machine.level = 1;
        if (layout->has_servers()) {
            plan.machine.worker.min_timeout = timeout_on_hosts;
            if (placed->memberships[number]->units() > 1) plan.machine.terms.root = control::endpoint_of(share.root);
        } else {
            plan.machine.switch_rank = control::host_of_switch(announcements, own.path.front().id);
        }
        plan.machine.ranks_of_workers.assign(ranks_of_workers.begin(), ranks_of_workers.end());
        if (plan.machine.terms.group.family == 0) continue;
        plan.group = group_config_of(options, plan, *formed.sockets[channel]);
        plan.machine.has_group = true;
    }
    return formed;
}

}  // namespace atp::comm
