// SPDX-License-Identifier: Apache-2.0
#include "comm/formation.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "client/switch_client.h"
#include "comm/job_name.h"
#include "comm/own_server.h"
#include "comm/switch_reach.h"
#include "control/formation_rounds.h"
#include "control/job_plan.h"
#include "control/join_tree.h"
#include "net/clock.h"
#include "net/local_route.h"
#include "net/random.h"
#include "net/resolve.h"
#include "net/udp_socket.h"

namespace atp::comm {
namespace {

using control::JobPlanner;
using control::LayoutKind;

// A rank on a host that answers does so within milliseconds.
constexpr Duration longest_answer = std::chrono::seconds(2);
// Aggregators that one job needs of a host: many times its packets in flight, so that few of them collide.
constexpr std::uint64_t memory_of_leaf = 16'000'000;

std::optional<LayoutKind> layout_named(const Options& options) {
    switch (options.server) {
        case ServerPlace::automatic: return std::nullopt;
        case ServerPlace::hosts: return LayoutKind::hosts;
        case ServerPlace::leaves: return LayoutKind::leaves;
        case ServerPlace::racks: return LayoutKind::racks;
        default: return LayoutKind::one_root;
    }
}

Result<control::JobRules> rules_of(const Options& options, bool any_shared) {
    control::JobRules rules{.channels = options.channels,
                            .lanes = options.lanes,
                            .window = options.window,
                            .audit = options.audit,
                            .scale = options.scale,
                            .multicast = options.multicast,
                            .layout = layout_named(options),
                            .colocated = options.server == ServerPlace::colocated,
                            // Where a rank speaks for others, one operation at a time passes through its memory.
                            .gathers = !any_shared};
    if (options.server != ServerPlace::dedicated) return rules;
    if (options.dedicated_servers.empty()) {
        return fail(Operation::join, Reason::malformed, {},
                    // errors.md, forms, malformed
                    "the list of dedicated servers is empty: use one or more host:port");
    }
    for (const std::string& server : options.dedicated_servers) {
        const auto addresses = net::resolve(server);
        if (!addresses) return tl::unexpected(addresses.error());
        rules.dedicated.push_back(control::endpoint_of(addresses->front()));
    }
    return rules;
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

using Sockets = std::vector<std::unique_ptr<net::Transport>>;

Result<Sockets> open_sockets(const Options& options, std::uint32_t count, const wire::Address& towards) {
    const auto local = net::local_address_towards(towards);
    if (!local) return tl::unexpected(local.error());
    net::UdpConfig config = udp_config_of(options, *local);
    config.reports_errors = true;
    const auto open = [&]() -> Result<std::unique_ptr<net::Transport>> {
        if (options.open_transport) return options.open_transport(config);
        return net::UdpSocket::open(config);
    };
    Sockets sockets;
    for (std::uint32_t channel = 0; channel < count; ++channel) {
        auto socket = open();
        if (!socket) return tl::unexpected(socket.error());
        sockets.push_back(*std::move(socket));
    }
    return sockets;
}

// What a rank knows of the network, and what it has there.
class Forming {
  public:
    Forming(store::Rendezvous& rendezvous, const Options& options, const Meeting& meeting,
            std::shared_ptr<const crypto::TenantKey> key, Time deadline)
        : rendezvous_(rendezvous),
          options_(options),
          ranks_(meeting.groups.speakers()),
          hosts_(meeting.groups.any_shared() ? meeting.groups.ranks : decltype(hosts_){}),
          name_{.job = meeting.facts.front().job,
                .token = meeting.facts.front().token,
                .first_group = meeting.facts.front().first_group},
          worker_(static_cast<std::uint16_t>(meeting.groups.host_of(rendezvous.party().rank))),
          key_(std::move(key)),
          deadline_(deadline) {}

    [[nodiscard]] Result<Formed> form() {
        auto rules = rules_of(options_, !hosts_.empty());
        if (!rules) return tl::unexpected(rules.error());
        if (auto described = describe(*rules); !described) return tl::unexpected(described.error());
        auto planner = plan(*rules);
        if (!planner) return tl::unexpected(planner.error());
        if (planner->has_servers()) {
            if (auto served = serve(*planner); !served) return tl::unexpected(served.error());
        }
        return finish(*planner);
    }

  private:
    [[nodiscard]] Result<void> describe(const control::JobRules& rules) {
        if (!options_.switch_address.empty() || options_.listen.empty()) {
            auto reached = reach_switch(options_, deadline_);
            if (!reached) return tl::unexpected(reached.error());
            reach_ = *std::move(reached);
            facts_.path = reach_->welcome.path;
            facts_.lanes = reach_->lanes;
            facts_.hosts_switch = options_.hosts_switch;
        }
        facts_.serves = !options_.listen.empty();
        const auto host = facts_.serves ? host_of_listen(options_.listen) : net::local_address_towards(reach_->address);
        if (!host) return tl::unexpected(host.error());
        facts_.host = to_string(host->with_port(0));
        facts_.rack = options_.rack;
        facts_.uplink = options_.uplink;
        facts_.host_bits_per_s = options_.link_rate;
        facts_.uplink_bits_per_s = options_.uplink_rate;
        if (!rules.colocated) return {};
        auto sockets = open_sockets(options_, rules.channels * (rules.gathers ? 2 : 1), reach_->address);
        if (!sockets) return tl::unexpected(sockets.error());
        formed_.sockets = *std::move(sockets);
        for (const auto& socket : formed_.sockets) facts_.sockets.push_back(control::endpoint_of(socket->local()));
        return {};
    }

    [[nodiscard]] Result<JobPlanner> plan(const control::JobRules& rules) {
        for (control::NetworkAttempts attempts;;) {
            auto all =
                rendezvous_.exchange(attempts.name(), facts_, ranks_, deadline_, wire::decode<wire::NetworkFacts>);
            if (!all) return tl::unexpected(all.error());
            auto planner = JobPlanner::make(rules, name_, ranks_, *std::move(all));
            if (planner || !attempts.look_again(planner.error())) return planner;
            std::this_thread::sleep_for(control::NetworkAttempts::pause);
            auto client = client::SwitchClient::open(reach_->address);
            if (!client) return tl::unexpected(client.error());
            auto welcome = greet(**client, deadline_);
            if (!welcome) return tl::unexpected(welcome.error());
            facts_.path = std::move(welcome->path);
        }
    }

    // Servers on the hosts of a job: one rank of each host serves a part of the channels. Without switches, each link
    // then carries what a ring's would.
    [[nodiscard]] Result<void> serve(JobPlanner& planner) {
        const std::vector<std::uint16_t> serving = planner.servers();
        wire::ServerFacts own;
        if (std::ranges::find(serving, worker_) != serving.end()) {
            auto node = serve_at(options_.listen, part());
            if (!node) return tl::unexpected(node.error());
            own.address = control::endpoint_of((*node)->address());
            server_ = *std::move(node);
        }
        auto servers =
            rendezvous_.exchange(control::round_servers, own, ranks_, deadline_, wire::decode<wire::ServerFacts>);
        if (!servers) return tl::unexpected(servers.error());
        auto reached = reach_servers(planner, *servers);
        if (!reached) return tl::unexpected(reached.error());
        auto all =
            rendezvous_.exchange(control::round_reached, *reached, ranks_, deadline_, wire::decode<wire::ReachedFacts>);
        if (!all) return tl::unexpected(all.error());
        if (auto settled = planner.settle(*std::move(servers), *std::move(all)); !settled) return settled;
        const std::vector<std::uint16_t> still = planner.servers();
        if (std::ranges::find(still, worker_) != still.end()) formed_.nodes.push_back(std::move(server_));
        if (leaf_ != nullptr && planner.leads(worker_)) formed_.nodes.push_back(std::move(leaf_));
        return {};
    }

    [[nodiscard]] Result<wire::ReachedFacts> reach_servers(const JobPlanner& planner,
                                                           const std::vector<wire::ServerFacts>& servers) {
        wire::ReachedFacts own;
        for (const std::uint16_t worker : planner.servers()) {
            const wire::Address address = control::address_of(servers[worker].address);
            const Time until = std::min(deadline_, net::after(net::now(), longest_answer));
            const auto reach = reach_address(address, options_, until);
            own.lanes.push_back(reach ? reach->lanes : 0);
            if (reach) continue;
            if (own.lanes.size() == 1) return tl::unexpected(reach.error());
            own.faults.push_back({.to = static_cast<std::uint16_t>(ranks_[worker]), .why = to_string(reach.error())});
        }
        if (!planner.leads(worker_) || !own.faults.empty()) return own;
        std::uint32_t lanes = std::ranges::min(own.lanes);
        if (planner.climbs(worker_)) lanes = std::min(lanes, facts_.lanes);
        auto node = serve_at(options_.listen, part(memory_of_leaf, lanes));
        if (!node) return tl::unexpected(node.error());
        leaf_ = *std::move(node);
        own.leaf = control::endpoint_of(leaf_->address());
        own.leaf_aggregators = switchd::aggregators_of_shard(leaf_->config());
        own.leaf_lanes = leaf_->config().lanes;
        return own;
    }

    [[nodiscard]] ServedPart part(std::uint64_t memory_bytes = 0, std::uint32_t lanes = 0) const {
        return {.job = {.job = name_.job, .token = name_.token},
                .key = key_,
                .memory_bytes = memory_bytes,
                .lanes = lanes,
                .indices = options_.indices};
    }

    [[nodiscard]] Result<Formed> finish(const JobPlanner& planner) {
        formed_.plan = planner.plan();
        formed_.layout = planner.text();
        if (formed_.sockets.empty()) {
            const wire::Endpoint first = planner.channel(0, worker_).join_at;
            const wire::Address towards = first.family == 0 ? reach_->address : control::address_of(first);
            auto sockets = open_sockets(options_, planner.sockets(), towards);
            if (!sockets) return tl::unexpected(sockets.error());
            formed_.sockets = *std::move(sockets);
        }
        for (std::uint32_t number = 0; number < planner.sockets(); ++number) {
            formed_.channels.push_back(channel_plan(planner.channel(number, worker_)));
        }
        return std::move(formed_);
    }

    [[nodiscard]] ChannelPlan channel_plan(control::PlannedChannel planned) const {
        const std::uint16_t number = planned.terms.channel;
        ChannelPlan plan;
        endpoint::ChannelMachineConfig& machine = plan.machine;
        machine.terms = planned.terms;
        machine.unit = std::move(planned.unit);
        machine.level = planned.level;
        machine.job_name = job_name_of(options_);
        machine.worker.channel = endpoint::channel_config(machine.terms, options_.indices.get());
        machine.worker.congestion = options_.congestion;
        machine.worker.congestion.most_packets = planned.window;
        machine.worker.congestion.channels = planned.channels;
        machine.worker.rank = worker_;
        machine.worker.place = planned.place;
        machine.worker.senders = protocol::SenderMasks(*planned.membership, worker_);
        machine.worker.scale = options_.scale;
        machine.worker.bypass_above = planned.bypass_above;
        if (planned.min_timeout) machine.worker.min_timeout = *planned.min_timeout;
        const std::size_t packet_bytes = ATP_HEADER_BYTES + std::size_t{machine.terms.lanes} * ATP_LANE_BYTES;
        machine.worker.train = static_cast<std::uint32_t>(net::UdpSender::most_message_bytes / packet_bytes);
        machine.switch_address = planned.join_at.family == 0 ? reach_->address : control::address_of(planned.join_at);
        machine.ranks_of_workers = hosts_;
        machine.switch_rank = planned.switch_rank;
        machine.root_rank = planned.root_rank;
        machine.server_rank = planned.server_rank;
        machine.hosts_server = planned.server_rank == worker_;
        machine.nonce = net::random_bits();
        machine.secret = net::random_secret();
        machine.key = key_;
        machine.membership = planned.membership;
        plan.thread = planned.thread;
        plan.loop.spin = options_.spin;
        if (!options_.cores.empty()) plan.loop.core = options_.cores[number % options_.cores.size()];
        if (machine.terms.group.family == 0) return plan;
        // A channel receives its group on the interface of the path to its switch.
        plan.group = udp_config_of(options_, control::address_of(machine.terms.group));
        plan.group->member_at = formed_.sockets[number]->local();
        machine.has_group = true;
        return plan;
    }

    store::Rendezvous& rendezvous_;
    const Options& options_;
    std::vector<std::uint32_t> ranks_;               // by worker
    std::vector<std::vector<std::uint16_t>> hosts_;  // for whom each worker speaks; empty: for itself
    control::JobName name_;
    std::uint16_t worker_;  // this rank
    std::shared_ptr<const crypto::TenantKey> key_;
    Time deadline_;
    std::optional<SwitchReach> reach_;  // of the switch that this rank names
    wire::NetworkFacts facts_;
    std::unique_ptr<switchd::SwitchNode> server_;
    std::unique_ptr<switchd::SwitchNode> leaf_;
    Formed formed_;
};

}  // namespace

Result<void> prepare_network(store::Rendezvous& rendezvous, const wire::RankFacts& first, Options& options,
                             Time deadline) {
    const bool is_first = rendezvous.party().rank == 0;
    std::string offered = first.switch_address;
    if (first.starts_switch && !is_first) {
        const auto found =
            rendezvous.collect_messages(control::round_switch, {0}, deadline, wire::decode<wire::ServerFacts>);
        if (!found) return tl::unexpected(found.error());
        offered = to_string(control::address_of(found->front().address));
    }
    if (options.use_network) {
        if (auto used = options.use_network(options, offered); !used) return used;
    }
    if (!first.starts_switch || !is_first) return {};
    const auto address = wire::Address::parse(options.switch_address);
    if (!address) return tl::unexpected(address.error());
    return rendezvous.announce_message(control::round_switch,
                                       wire::ServerFacts{.address = control::endpoint_of(*address)});
}

Result<Formed> form_over_network(store::Rendezvous& rendezvous, const Options& options, const Meeting& meeting,
                                 std::shared_ptr<const crypto::TenantKey> key, Time deadline) {
    return Forming(rendezvous, options, meeting, std::move(key), deadline).form();
}

}  // namespace atp::comm
