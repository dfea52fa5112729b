// SPDX-License-Identifier: Apache-2.0
#include "check/joining_machines.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <string_view>
#include <utility>

#include "check/clock_archive.h"
#include "control/gatekeeper.h"
#include "control/persist_join_tree.h"
#include "control/tree_messages.h"

namespace atp::check::ATP_VARIANT {
namespace {

using control::MemberCause;
using Kind = std::uint8_t;  // kind of a packet in flight
constexpr Kind message = 0;
constexpr Kind report = 1;  // of a host: no process has the port of `from`. With the begin of the packet
constexpr Kind start_order = 2;
constexpr Kind leave_order = 3;

constexpr std::uint32_t job = 7;
constexpr std::uint64_t token = 0x5eed;
constexpr std::uint16_t channel = 3;
constexpr std::uint16_t port = 4790;
constexpr std::uint64_t nonce_of_earlier = 900;
constexpr std::uint32_t number_of_earlier = 60;

wire::Address address_of(unsigned node) {
    static const std::vector<wire::Address> all = [] {
        std::vector<wire::Address> made;
        for (unsigned i = 1; i <= 16; ++i) {
            made.push_back(*wire::Address::parse("10.0.0." + std::to_string(i) + ":" + std::to_string(port)));
        }
        return made;
    }();
    return all[node];
}

Sent flying(unsigned from, unsigned to, Kind kind, std::span<const std::byte> bytes) {
    Sent sent{.to = to, .size = static_cast<std::uint32_t>(2 + bytes.size())};
    assert(sent.size <= sent.bytes.size());
    sent.bytes[0] = static_cast<std::byte>(kind);
    sent.bytes[1] = static_cast<std::byte>(from);
    std::ranges::copy(bytes, sent.bytes.begin() + 2);
    return sent;
}

Sent flying(unsigned from, unsigned to, const wire::JoiningMessage& sent) {
    std::array<std::byte, 500> bytes{};
    const std::size_t size = wire::encode(sent, bytes);
    assert(size != 0);
    return flying(from, to, message, std::span(bytes).first(size));
}

unsigned node_of(const wire::Address& address) {
    for (unsigned node = 0; node < 16; ++node) {
        if (address_of(node) == address) return node;
    }
    return 0;
}

}  // namespace

struct JoiningMachines::Flight {
    Kind kind = message;
    unsigned from = 0;
    std::span<const std::byte> bytes;

    [[nodiscard]] static std::optional<Flight> of(std::span<const std::byte> packet) {
        if (packet.empty()) return std::nullopt;
        return Flight{std::to_integer<Kind>(packet[0]), std::to_integer<unsigned>(packet[1]), packet.subspan(2)};
    }
    [[nodiscard]] wire::SendError error() const {
        wire::SendError error{
            .kind = wire::SendError::Kind::port_unreachable, .to = address_of(from), .by_network = true};
        error.quoted_bytes = std::min(bytes.size(), error.quoted.size());
        std::ranges::copy(bytes.first(error.quoted_bytes), error.quoted.begin());
        return error;
    }
};

JoiningMachines::JoiningMachines(const Configuration& configuration)
    : configuration_(configuration), ranks_(configuration.workers()) {
    const bool has_root = configuration_.units.size() > 1;
    auto leaf = static_cast<std::uint8_t>(ranks_);
    const auto leaves =
        std::ranges::count_if(configuration_.units, [](const UnitLayout& unit) { return !unit.direct; });
    const auto root = static_cast<std::uint8_t>(has_root ? leaf + leaves : leaf);
    std::vector<Node> switches;
    const auto units = static_cast<std::uint8_t>(configuration_.units.size());
    for (std::uint8_t unit = 0; unit < units; ++unit) {
        const UnitLayout& layout = configuration_.units[unit];
        all_units_ |= 1U << unit;
        unit_members_.push_back((1U << layout.workers) - 1);
        for (std::uint8_t member = 0; member < layout.workers; ++member) {
            nodes_.push_back({NodeKind::worker, layout.direct ? root : leaf, unit, member, layout.direct});
        }
        if (has_root && !layout.direct) {
            switches.push_back({NodeKind::aggregating_switch, root, unit});
            ++leaf;
        }
    }
    switches.push_back({NodeKind::aggregating_switch, root});
    nodes_.insert(nodes_.end(), switches.begin(), switches.end());
}

std::string JoiningMachines::name(unsigned node) const {
    if (node < ranks_) return "rank " + std::to_string(node);
    if (nodes_[node].parent != node) return "leaf " + std::to_string(node - ranks_);
    return configuration_.units.size() > 1 ? "root" : "switch";
}

control::JoinClientConfig JoiningMachines::config_of_rank(unsigned node, bool earlier) const {
    const Node& place = nodes_[node];
    control::JoinClientConfig config;
    config.terms = {.job = job,
                    .token = token,
                    .channel = channel,
                    .lanes = 4,
                    .window_log2 = 3,
                    .aggregators = 64,
                    .mask1 = all_units_,
                    .scale = 1e6};
    if (configuration_.names_root) config.terms.root = control::endpoint_of(address_of(root_of(place)));
    config.unit = {.unit = place.unit,
                   .members = 1U << place.member,
                   .mask0 = unit_members_[place.unit],
                   .direct = place.direct,
                   .ranks = {static_cast<std::uint16_t>(node)}};
    config.level = place.direct ? 1 : 0;
    config.switch_address = address_of(place.parent);
    config.nonce = earlier ? nonce_of_earlier : 100 + node;
    return config;
}

control::JoinTreeConfig JoiningMachines::config_of_switch(unsigned node, unsigned boots) const {
    control::JoinTreeConfig config;
    if (nodes_[node].parent != node && !configuration_.names_root) config.parent = address_of(nodes_[node].parent);
    config.hold = configuration_.hold_ticks * model_tick;
    config.nonce = 1000 + 16 * boots + node;
    config.secret = {config.nonce, 1};
    return config;
}

unsigned JoiningMachines::root_of(const Node& rank) const {
    const unsigned above = rank.parent;
    return nodes_[above].parent;
}

unsigned JoiningMachines::node_at(const wire::Endpoint& endpoint) const {
    return node_of(control::address_of(endpoint));
}

void JoiningMachines::start(unsigned node, Step& step) {
    step.reset();
    Life life;
    if (node < ranks_) {
        control::JoinClient client(config_of_rank(node, false));
        save(node, life, &client, nullptr, model_now, step);
        step.sent.push_back(flying(node, node, start_order, {}));
        if (configuration_.leaver == static_cast<int>(node)) step.sent.push_back(flying(node, node, leave_order, {}));
    } else {
        life.phase = Phase::runs;
        control::JoinTree tree(config_of_switch(node, 0));
        save(node, life, nullptr, &tree, model_now, step);
    }
}

// An earlier process of rank 0 had the same token and the same address.
void JoiningMachines::earlier_packets(std::vector<Sent>& sent) {
    if (!configuration_.earlier_incarnation) return;
    const control::JoinClientConfig config = config_of_rank(0, true);
    const unsigned parent = nodes_[0].parent;
    sent.push_back(flying(parent, 0,
                          wire::Joined{.nonce = config.nonce,
                                       .job = job,
                                       .token = token,
                                       .channel = channel,
                                       .epoch = 1,
                                       .number = number_of_earlier,
                                       .ready = true,
                                       .hold_ms = 200}));
    sent.push_back(flying(0, parent,
                          wire::Leave{.nonce = config.nonce,
                                      .job = job,
                                      .token = token,
                                      .channel = channel,
                                      .epoch = number_of_earlier,
                                      .unit = config.unit.unit,
                                      .member = 0}));
}

void JoiningMachines::step(unsigned node, std::span<const std::byte> before, Input input,
                           std::span<const std::byte> packet, Step& step) {
    step.reset();
    const Time now = input == Input::timeout ? model_now + model_tick : model_now;
    const std::optional<Flight> flight = Flight::of(packet);
    ClockReader reader(before);
    Life life;
    reader.value(life);
    if (node < ranks_) {
        control::JoinClient client(config_of_rank(node, false));
        client.persist(reader);
        step_rank(node, input, flight, life, client, step);
        return save(node, life, &client, nullptr, now, step);
    }
    control::JoinTree tree(config_of_switch(node, life.boots));
    if (life.phase != Phase::crashed) tree.persist(reader);
    if (input == Input::restart) {
        life = {.phase = Phase::runs, .boots = static_cast<std::uint8_t>(life.boots + 1)};
        control::JoinTree fresh(config_of_switch(node, life.boots));
        return save(node, life, nullptr, &fresh, now, step);
    }
    step_switch(node, input, flight, life, tree, step);
    save(node, life, nullptr, &tree, now, step);
}

// The host of a process that ended, or has not started, may report it.
void JoiningMachines::refuse(unsigned node, const std::optional<Flight>& flight, Step& step) const {
    if (!configuration_.hosts_report || !flight || flight->kind != message) return;
    const std::span quoted = flight->bytes.first(std::min(flight->bytes.size(), wire::SendError::most_quoted_bytes));
    step.sent.push_back(flying(node, flight->from, report, quoted));
}

void JoiningMachines::step_rank(unsigned node, Input input, const std::optional<Flight>& flight, Life& life,
                                control::JoinClient& client, Step& step) const {
    if (input == Input::crash) life.phase = Phase::crashed;
    const bool waits = life.phase == Phase::waits;
    const bool is_order = flight && flight->kind == leave_order;
    if (life.phase == Phase::crashed || (waits && !is_order && !(flight && flight->kind == start_order))) {
        return refuse(node, flight, step);
    }
    if (is_order) {
        if (waits) {
            step.sent.push_back(flying(node, node, leave_order, {}));
            return;
        }
        life.phase = Phase::left;
        if (!client.ended()) client.leave();
    } else if (input == Input::timeout) {
        const Time now = model_now + model_tick;
        if (client.poll_timeout() <= now) client.handle_timeout(now);
    } else if (flight->kind == start_order) {
        life.phase = Phase::runs;
        client.handle_timeout(model_now);
    } else if (flight->kind == report) {
        client.handle_send_error(flight->error(), model_now);
    } else {
        static_cast<void>(client.handle_message(flight->bytes, address_of(flight->from), false, model_now));
    }
    drain(node, life, client, step);
}

void JoiningMachines::drain(unsigned node, Life& life, control::JoinClient& client, Step& step) const {
    using Event = control::MemberEvent::Kind;
    while (const auto event = client.poll_event()) {
        if (event->kind == Event::ready) {
            client.set_busy(true);
            step.claims.became_ready = true;
        } else if (event->kind == Event::ended) {
            life.failed = true;
            step.claims.blames = true;
            step.claims.blamed = blamed_by(node, event->cause);
            step.claims.lost_sums = event->cause.kind == MemberCause::Kind::refused;
            client.leave();
        }
    }
    while (auto transmit = client.poll_transmit()) {
        step.sent.push_back(flying(node, node_of(transmit->to), transmit->message));
    }
}

void JoiningMachines::step_switch(unsigned node, Input input, const std::optional<Flight>& flight, Life& life,
                                  control::JoinTree& tree, Step& step) const {
    if (input == Input::crash) life.phase = Phase::crashed;
    if (life.phase == Phase::crashed) return refuse(node, flight, step);
    if (input == Input::timeout) {
        const Time now = model_now + model_tick;
        if (tree.poll_timeout() <= now) tree.handle_timeout(now);
    } else if (flight->kind == report) {
        tree.handle_send_error(flight->error(), model_now);
    } else {
        handle_message(node, *flight, life, tree, step);
    }
    while (const auto event = tree.poll_event()) {
        if (event->kind == control::TreeEvent::Kind::opened) tree.opened(control::key_of(*event));
    }
    while (tree.poll_notice()) {
    }
    while (auto transmit = tree.poll_transmit()) {
        step.sent.push_back(flying(node, node_of(transmit->to), transmit->message));
    }
}

void JoiningMachines::handle_message(unsigned node, const Flight& flight, Life& life, control::JoinTree& tree,
                                     Step& step) const {
    const wire::Address from = address_of(flight.from);
    const control::ChannelKey key{job, token, channel};
    const auto child_from = [&]() -> const control::Branch::Child* {
        const control::Branch* const branch = tree.find(key);
        const control::Branch::Child* found = nullptr;
        if (branch == nullptr) return nullptr;
        branch->for_each_child([&](const control::Branch::Child& child) {
            if (child.address == from) found = &child;
        });
        return found;
    };
    const control::Branch::Child* const child = child_from();
    const std::uint64_t nonce = child == nullptr ? 0 : child->nonce;
    control::Gatekeeper gatekeeper(config_of_switch(node, life.boots).secret);
    const auto reception = control::handle_tree_message(tree, gatekeeper, flight.bytes, from, model_now);
    if (reception.retry) step.sent.push_back(flying(node, flight.from, *reception.retry));
    if (const auto leave = wire::decode<wire::Leave>(flight.bytes); leave && nonce != 0 && child_from() == nullptr) {
        if (nonce != leave->nonce) step.violate("a LEAVE removed another process");
        life.left_epochs[flight.from] = leave->epoch;
    }
    const auto join = wire::decode<wire::Join>(flight.bytes);
    if (join && !reception.retry && join->epoch < life.left_epochs[flight.from] && child_from() != nullptr) {
        step.violate("an old JOIN brought back a member that left");
    }
}

void JoiningMachines::save(unsigned node, Life& life, control::JoinClient* client, control::JoinTree* tree, Time now,
                           Step& step) const {
    ClockWriter writer(step.state, now);
    writer.value(life);
    Summary& summary = step.summary;
    summary.crashed = life.phase == Phase::crashed;
    summary.restarted = life.boots != 0;
    summary.failed = life.failed;
    if (client != nullptr) {
        if (!summary.crashed) client->persist(writer);
        if (summary.crashed) control::JoinClient(config_of_rank(node, false)).persist(writer);
        summary.started = life.phase != Phase::waits;
        summary.left = life.phase == Phase::left;
        summary.ready = client->was_ready();
        summary.done = summary.crashed || summary.left || summary.failed;
        return;
    }
    summary.untouched = !summary.crashed && tree->channels() == 0;
    if (summary.crashed) return;
    tree->persist(writer);
    const control::Branch* const branch = tree->find({job, token, channel});
    summary.held = static_cast<std::uint8_t>(tree->channels());
    summary.ready = branch != nullptr && branch->ready();
}

bool JoiningMachines::is_command(std::span<const std::byte> packet) const {
    return std::to_integer<Kind>(packet[0]) >= start_order;
}

std::string JoiningMachines::describe(std::span<const std::byte> packet) const {
    const std::optional<Flight> flight = Flight::of(packet);
    if (flight->kind == start_order) return "start";
    if (flight->kind == leave_order) return "leave";
    const std::string from = " of " + name(flight->from);
    if (flight->kind == report) return "report that no process has the port" + from;
    if (const auto join = wire::decode<wire::Join>(flight->bytes)) {
        return "JOIN " + std::to_string(join->epoch) + from + (join->cookie == 0 ? " without a cookie" : "") +
               (join->edges.empty() ? "" : " with a failed edge");
    }
    if (const auto joined = wire::decode<wire::Joined>(flight->bytes)) {
        return "JOINED " + std::to_string(joined->number) + from + (joined->ready ? " ready" : "") +
               (joined->edges.empty() ? "" : " with a failed edge");
    }
    if (wire::decode<wire::Leave>(flight->bytes)) return "LEAVE" + from;
    return (wire::decode<wire::Retry>(flight->bytes) ? "RETRY" : "REFUSED") + from;
}

}  // namespace atp::check::ATP_VARIANT
