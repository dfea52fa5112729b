// SPDX-License-Identifier: Apache-2.0
#include "endpoint/channel_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "control/branch.h"

namespace atp::endpoint {
inline namespace ATP_VARIANT {

std::vector<std::uint32_t> ranks_in(const ChannelMachineConfig& config, std::uint32_t units, std::uint32_t members) {
    const protocol::Membership& membership = *config.membership;
    std::vector<std::uint32_t> ranks;
    for (; units != 0; units &= units - 1) {
        const auto unit = static_cast<unsigned>(std::countr_zero(units));
        if (unit >= membership.units()) break;
        const std::uint32_t mask = membership.unit_mask(unit);
        for (std::uint32_t bits = members == 0 ? mask : members & mask; bits != 0; bits &= bits - 1) {
            const std::uint16_t worker = membership.rank_of(unit, static_cast<unsigned>(std::countr_zero(bits)));
            if (config.ranks_of_workers.empty()) {
                ranks.push_back(worker);
            } else {
                std::ranges::copy(config.ranks_of_workers[worker], std::back_inserter(ranks));
            }
        }
    }
    return ranks;
}

namespace {

std::uint16_t speaker_of(const ChannelMachineConfig& config, std::uint16_t worker) {
    return config.ranks_of_workers.empty() ? worker : config.ranks_of_workers[worker].front();
}

using control::MemberCause;

// Silence of the answerer that a text names.
constexpr Duration short_silence = std::chrono::seconds(1);

Error with_ranks(Error error, std::vector<std::uint32_t> ranks) {
    error.peer = list_of_ranks(ranks);
    error.ranks = std::move(ranks);
    return error;
}

// The switch of this channel is at fault, and with it the rank whose process runs it.
Error with_switch(Error error, const ChannelMachineConfig& config) {
    error.peer = error.address = to_string(config.switch_address);
    if (!config.switch_rank) return error;
    const std::uint16_t rank = speaker_of(config, *config.switch_rank);
    error.ranks = {rank};
    error.peer = fmt::format("rank {} (switch at {})", rank, error.address);
    return error;
}

// Names the rank whose call differs from that of most ranks. The first statement is that of most ranks.
Error error_of_mismatch(const OperationCause& cause, const ChannelMachineConfig& config) {
    if (cause.statements.size() >= 2) {
        const wire::Statement& most = cause.statements.front();
        const wire::Statement& odd = cause.statements.back();
        const std::vector<std::uint32_t> ranks = ranks_in(config, 1U << odd.unit, 1U << odd.member);
        // One of the ranks that say so.
        const std::vector<std::uint32_t> agreed = ranks_in(config, 1U << most.unit, 1U << most.member);
        const std::string others = most.count == 1 ? list_of_ranks(agreed) : "the others";
        return with_ranks(
            {.operation = Operation::wait,
             .reason = Reason::mismatched,
             .elapsed = cause.event.elapsed,
             // errors.md, runs, mismatched: operations, types, sizes or roots differ: compare that rank's script with
             // the others
             .text = fmt::format("{} called {}, {} {}: make all ranks call the same sequence with equal types and "
                                 "sizes",
                                 list_of_ranks(ranks), odd.text, others, most.text)},
            ranks);
    }
    return {.operation = Operation::wait,
            .reason = Reason::mismatched,
            .elapsed = cause.event.elapsed,
            // errors.md, runs, mismatched: which rank differs is unknown
            .text =
                "the ranks called different operations: make all ranks call the same sequence with equal types and "
                "sizes"};
}

Error error_of_silence(const OperationCause& cause, const ChannelMachineConfig& config) {
    const protocol::WorkerEvent& event = cause.event;
    Error error{.operation = Operation::wait, .reason = Reason::timed_out, .elapsed = event.elapsed};
    // Ranks that were missing may have joined since the last message of the switch.
    std::vector<std::uint32_t> missing;
    if (!cause.switch_is_silent) missing = ranks_in(config, event.missing_units, event.missing_members);
    if (!missing.empty()) {
        // errors.md, runs, timed out: the named ranks did not call the operation
        error.text = "no data of this operation arrived from them: check that these processes run and call it";
        return with_ranks(std::move(error), std::move(missing));
    }
    if (!event.answered || cause.server_silent > short_silence) {
        error.text = fmt::format(
            // errors.md, runs, timed out: the server, or the path to it, failed
            "nothing was received from the parameter server {}",
            event.answered ? fmt::format("for {:.1f} s", to_seconds(cause.server_silent)) : std::string("at all"));
        if (cause.switch_is_silent) {
            error.text += fmt::format(", and nothing from the switch for {:.1f} s", to_seconds(cause.switch_silent));
        }
    } else {
        // errors.md, runs, timed out: the timeout is too short, or the network loses many packets
        error.text = "timed out although the parameter server answers: raise the timeout";
    }
    return with_switch(std::move(error), config);
}

Error error_of_operation(const OperationCause& cause, const ChannelMachineConfig& config) {
    const bool differs = cause.event.kind == protocol::WorkerEvent::Kind::mismatched;
    return differs ? error_of_mismatch(cause, config) : error_of_silence(cause, config);
}

Error error_of_foreign_version(const MemberCause& cause) {
    const unsigned version = cause.version & 0xFU;
    return {.operation = Operation::join,
            .reason = Reason::version_mismatch,
            .peer = to_string(cause.from),
            // errors.md, forms, version mismatch: two versions of ATP: [upgrade](../operate/upgrade.md#versions)
            .text = cause.text.empty() ? fmt::format("it speaks version {} of the protocol: run the same version of "
                                                     "atp on workers and switches",
                                                     version)
                                       : cause.text};
}

Error error_of_refusal(const MemberCause& cause) {
    return {.operation = Operation::join,
            .reason = Reason::rejected,
            .peer = to_string(cause.from),
            .text = cause.text.empty()
                        ? fmt::format("the switch gave the reason \"{}\" and no text", wire::to_string(cause.refusal))
                        : cause.text};
}

// " at ADDRESS"; empty: the terms name no server.
std::string place_of_server(const ChannelMachineConfig& config) {
    const wire::Endpoint& server = config.terms.server;
    return server.family == 0 ? "" : " at " + to_string(control::address_of(server));
}

Error error_of_missing(const MemberCause& cause, const ChannelMachineConfig& config) {
    Error error{.operation = Operation::wait, .reason = Reason::failed, .elapsed = cause.elapsed};
    std::vector<std::uint32_t> ranks = ranks_in(config, cause.missing_units, cause.missing_members);
    if (ranks.empty()) {
        error.peer = to_string(config.switch_address);
        // errors.md, runs, failed: a dedicated or colocated server ended or froze
        error.text = fmt::format("the parameter server{} stopped responding: check that its process runs",
                                 place_of_server(config));
        return error;
    }
    // errors.md, runs, failed: those ranks failed, or their hosts do not reach the switch
    error.text = list_of_ranks(ranks) + " left the job or is unreachable: check its process";
    return with_ranks(std::move(error), std::move(ranks));
}

// The ranks that did not return may have failed because of the switch.
Error error_of_restarted_switch(const MemberCause& cause, const ChannelMachineConfig& config) {
    const std::string ranks = list_of_ranks(ranks_in(config, cause.missing_units, cause.missing_members));
    return with_switch({.operation = Operation::wait,
                        .reason = Reason::failed,
                        .elapsed = cause.elapsed,
                        // errors.md, runs, failed: the named ranks failed while the switch was away
                        .text = fmt::format("the switch at {} restarted, and {} did not join again: form the job again",
                                            to_string(config.switch_address), ranks.empty() ? "a rank" : ranks)},
                       config);
}

Error error_of_silent_switch(const MemberCause& cause, const ChannelMachineConfig& config) {
    const std::string address = to_string(config.switch_address);
    const std::string where = config.switch_rank ? fmt::format("{} in the process of rank {}", address,
                                                               speaker_of(config, *config.switch_rank))
                                                 : address;
    return with_switch(
        {.operation = Operation::wait,
         .reason = Reason::unreachable,
         .elapsed = cause.elapsed,
         // errors.md, runs, unreachable: it is frozen, its host is down, or the path to it failed
         .text = fmt::format("no answer from the switch at {} for {:.1f} s: check that it runs, and diagnose the "
                             "path with `atp doctor --switch {}`",
                             where, to_seconds(cause.elapsed), address)},
        config);
}

Error error_of_ended_switch(const MemberCause& cause, const ChannelMachineConfig& config) {
    const std::string address = to_string(config.switch_address);
    const std::string text =
        config.switch_rank
            // errors.md, runs, refused: it crashed or was killed, and it ran the switch too
            ? fmt::format("rank {}'s process exited and took the switch at {} with it: check that rank's output",
                          speaker_of(config, *config.switch_rank), address)
            : fmt::format(
                  // errors.md, runs, refused: it ended, or was away for longer than 0.4 s
                  "the process of the switch at {} ended, since its host reports that no process has this "
                  "port: start the switch and form the job again",
                  address);
    return with_switch(
        {.operation = Operation::wait, .reason = Reason::refused, .elapsed = cause.elapsed, .text = text}, config);
}

// Bytes of an IP packet without options around so many bytes of UDP payload.
std::uint32_t ip_bytes(std::uint32_t payload, wire::Family family) {
    constexpr std::uint32_t udp_header = 8;
    return payload + udp_header + (family == wire::Family::ipv6 ? 40U : 20U);
}

Error error_of_narrow_path(const MemberCause& cause, const ChannelMachineConfig& config) {
    const std::string address = to_string(config.switch_address);
    const std::string mtu = cause.mtu == 0 ? "too small" : fmt::format("{} bytes", cause.mtu);
    const std::string packets = cause.packet_bytes == 0
                                    ? "less than the packets of this job have"
                                    : fmt::format("the packets of this job have {}",
                                                  ip_bytes(cause.packet_bytes, config.switch_address.family()));
    return {
        .operation = Operation::wait,
        .reason = Reason::too_large,
        .peer = address,
        .elapsed = cause.elapsed,
        // errors.md, runs, too large: an MTU fell after the job had formed
        .text = fmt::format("path MTU of rank {} to the switch at {} is {}, {}: raise the MTU, or form the job again "
                            "for shorter packets",
                            speaker_of(config, config.worker.rank), address, mtu, packets)};
}

// The rank at the place that an edge names; "a rank" if the place is unknown.
std::string rank_at(const wire::Edge& edge, const ChannelMachineConfig& config) {
    const std::string rank = list_of_ranks(ranks_in(config, 1U << edge.unit, 1U << edge.member));
    return rank.empty() ? "a rank" : rank;
}

std::string seconds_of(const wire::Edge& edge) { return fmt::format("{:.1f} s", edge.silent_ms / 1000.0); }

// The switch of the rank that an edge names: its address if this rank has the same.
std::string switch_of(const wire::Edge& edge, const ChannelMachineConfig& config) {
    return edge.unit == config.unit.unit ? "the switch at " + to_string(config.switch_address) : "its switch";
}

std::string text_of_member(const wire::Edge& edge, const ChannelMachineConfig& config) {
    const std::string rank = rank_at(edge, config);
    const std::string its_switch = switch_of(edge, config);
    switch (edge.evidence) {
        // errors.md, runs, failed: that rank raised an error, or ended while the others called another operation
        case wire::Evidence::left: return rank + " left the job: check its output";
        // errors.md, runs, refused: that rank crashed or was killed
        case wire::Evidence::closed: return "the process of " + rank + " ended, as its host reports: check its output";
        case wire::Evidence::one_direction:
            // errors.md, runs, unreachable: packets pass in only one direction between that rank and its switch
            return fmt::format("{} received nothing from {} for {}: check the link to its host", rank, its_switch,
                               seconds_of(edge));
        default: break;
    }
    // errors.md, runs, unreachable: the second one is frozen, its host is down, or the link between both failed
    return fmt::format("{} received nothing from {} for {}: check its process, its host and the link", its_switch, rank,
                       seconds_of(edge));
}

std::string parent_of(const ChannelMachineConfig& config) {
    return config.root_rank ? fmt::format("the sums of rank {}", speaker_of(config, *config.root_rank)) : "its parent";
}

std::string text_of_switch(const wire::Edge& edge, const ChannelMachineConfig& config) {
    const std::string address = to_string(control::address_of(edge.at));
    const bool is_parent = edge.kind == wire::EdgeKind::parent;
    const bool is_server = edge.kind == wire::EdgeKind::server;
    const std::string server =
        config.server_rank ? fmt::format("the parameter server of rank {}", speaker_of(config, *config.server_rank))
                           : "the parameter server";
    if (is_server && config.server_rank && edge.evidence == wire::Evidence::closed) {
        return fmt::format(
            // errors.md, runs, refused: it crashed or was killed, and it ran the server too
            "rank {}'s process exited and took the parameter server at {} with it: check that rank's output",
            speaker_of(config, *config.server_rank), address);
    }
    if (is_parent && config.root_rank && edge.evidence == wire::Evidence::closed) {
        // errors.md, runs, refused: it crashed or was killed, and it added a part of the sums
        return fmt::format("rank {}'s process exited and took the sums at {} with it: check that rank's output",
                           speaker_of(config, *config.root_rank), address);
    }
    if (edge.evidence == wire::Evidence::closed) {
        // errors.md, runs, refused: it crashed or was stopped
        return fmt::format("the process of the {} at {} ended, as its host reports: start it and form the job again",
                           is_server ? "parameter server" : "switch", address);
    }
    if (edge.evidence == wire::Evidence::left) {
        // errors.md, runs, failed: all ranks below that switch left or failed
        return fmt::format("the switch at {} left the job, with all ranks below it", address);
    }
    if (edge.evidence == wire::Evidence::too_long) {
        const std::string path =
            is_parent ? fmt::format("the switch at {} and its parent at {}", to_string(config.switch_address), address)
            : is_server ? fmt::format("the last switch and {} at {}", server, address)
                        : fmt::format("the switch at {} and its parent", address);
        return fmt::format(
            // errors.md, runs, too large: an MTU fell after the job had formed, or a link loses long packets
            "long packets are lost on the path between {}, short ones arrive: raise the MTU of its links, or form the "
            "job again for shorter packets",
            path);
    }
    if (edge.evidence == wire::Evidence::paused) {
        // errors.md, runs, unreachable: its host was overloaded, or the process was frozen (SIGSTOP): give it
        // [cores](../operate/tune.md#threads-and-cores)
        return fmt::format("the process of the switch at {} did not run for {}: check the load of its host", address,
                           seconds_of(edge));
    }
    const std::string near = is_parent ? fmt::format("the switch at {}", to_string(config.switch_address))
                                       : std::string(is_server ? "the last switch" : "its parent");
    const std::string far = fmt::format("{} at {}",
                                        is_parent   ? parent_of(config)
                                        : is_server ? server
                                                    : std::string("the switch"),
                                        address);
    if (edge.evidence == wire::Evidence::one_direction) {
        // errors.md, runs, unreachable: packets pass in only one direction between both
        return fmt::format("{} received nothing from {} for {}: check the link between them", far, near,
                           seconds_of(edge));
    }
    return fmt::format("{} received nothing from {} for {}: check its process, its host and the link", near, far,
                       seconds_of(edge));
}

std::string text_of_path(const wire::Edge& edge, const ChannelMachineConfig& config) {
    const std::string mtu = edge.detail == 0 ? "too small" : fmt::format("{} bytes", edge.detail);
    return fmt::format(
        // errors.md, runs, too large: an MTU fell after the job had formed
        "path MTU of {} to {} is {}, less than the packets of this job have: raise the MTU, or form the "
        "job again for shorter packets",
        rank_at(edge, config), switch_of(edge, config), mtu);
}

// The rank at the place that an edge names.
Error with_rank_at(Error error, const wire::Edge& edge, const ChannelMachineConfig& config) {
    error.peer = rank_at(edge, config);
    error.ranks = ranks_in(config, 1U << edge.unit, 1U << edge.member);
    return error;
}

// The switch or server that an edge names is at fault, and with it the rank whose process runs it.
Error with_switch_at(Error error, const wire::Edge& edge, const ChannelMachineConfig& config) {
    error.peer = error.address = to_string(control::address_of(edge.at));
    const auto& rank = edge.kind == wire::EdgeKind::server ? config.server_rank : config.root_rank;
    const bool known = rank && edge.kind != wire::EdgeKind::leaf;
    return known ? with_ranks(std::move(error), {speaker_of(config, *rank)}) : error;
}

Error error_of_edge(const MemberCause& cause, const ChannelMachineConfig& config) {
    const wire::Edge& edge = cause.edge;
    Error error{.operation = Operation::wait, .reason = Reason::failed, .elapsed = cause.elapsed};
    switch (edge.kind) {
        case wire::EdgeKind::member:
            error = with_rank_at(std::move(error), edge, config);
            error.text = text_of_member(edge, config);
            break;
        case wire::EdgeKind::path_mtu:
            error = with_rank_at(std::move(error), edge, config);
            error.reason = Reason::too_large;
            error.text = text_of_path(edge, config);
            break;
        default:
            error = with_switch_at(std::move(error), edge, config);
            error.text = text_of_switch(edge, config);
            break;
    }
    if (edge.evidence == wire::Evidence::closed) error.reason = Reason::refused;
    if (edge.evidence == wire::Evidence::too_long) error.reason = Reason::too_large;
    if (edge.evidence == wire::Evidence::silence || edge.evidence == wire::Evidence::one_direction ||
        edge.evidence == wire::Evidence::paused) {
        error.reason = Reason::unreachable;
    }
    return error;
}

Error error_of_membership(const MemberCause& cause, const ChannelMachineConfig& config) {
    switch (cause.kind) {
        case MemberCause::Kind::refused:
        case MemberCause::Kind::unproven: return error_of_refusal(cause);
        case MemberCause::Kind::foreign_version: return error_of_foreign_version(cause);
        case MemberCause::Kind::switch_restarted: return error_of_restarted_switch(cause, config);
        case MemberCause::Kind::switch_silent: return error_of_silent_switch(cause, config);
        case MemberCause::Kind::switch_ended: return error_of_ended_switch(cause, config);
        case MemberCause::Kind::path_too_narrow: return error_of_narrow_path(cause, config);
        case MemberCause::Kind::edge_failed: return error_of_edge(cause, config);
        case MemberCause::Kind::members_missing:
        case MemberCause::Kind::server_missing: break;
    }
    return error_of_missing(cause, config);
}

}  // namespace

Error error_of(const ChannelCause& cause, const ChannelMachineConfig& config) {
    if (const auto* operation = std::get_if<OperationCause>(&cause)) return error_of_operation(*operation, config);
    return error_of_membership(std::get<MemberCause>(cause), config);
}

std::string waiting_text(const MemberCause& missing, const ChannelMachineConfig& config) {
    if (!missing.text.empty()) return missing.text;
    const std::string ranks = list_of_ranks(ranks_in(config, missing.missing_units, missing.missing_members));
    // errors.md, forms, timed out: the named ranks do not reach their switch: run `atp doctor --switch` there
    if (!ranks.empty()) return ranks + " did not join";
    // errors.md, forms, timed out: a firewall between the last switch and a dedicated or colocated server
    return fmt::format("the switches did not reach the parameter server{}", place_of_server(config));
}

std::string slow_text(const wire::Pace& pace, const ChannelMachineConfig& config) {
    const double waited = 100.0 * pace.waited_permille / wire::whole_permille;
    const std::string ranks = list_of_ranks(ranks_in(config, 1U << pace.unit, pace.whole_unit ? 0 : 1U << pace.member));
    const std::string late = pace.whole_unit ? "the switch of " + ranks : ranks;
    return fmt::format(
        // errors.md, none: the event `rank slow` has it
        "the others wait {:.0f} % of the time for {}, which is the last in {} % of the fragments: check its load and "
        "its link",
        waited, late, pace.last_percent);
}

Error error_of_slow_join(const std::string& waiting, Duration elapsed, const ChannelMachineConfig& config) {
    return {.operation = Operation::join,
            .reason = Reason::timed_out,
            .peer = to_string(config.switch_address),
            .elapsed = elapsed,
            // errors.md, forms, timed out: the switch ended or froze, or the path failed, while the job formed
            .text = waiting.empty() ? "the switch does not answer: diagnose it with `atp doctor`" : waiting};
}

Error error_of_part(Error first, Operation operation, Duration since_begun) {
    first.operation = operation;
    first.elapsed = std::max(Duration::zero(), since_begun);
    return first;
}

Error error_after_end(Error first, Operation operation) {
    first.operation = operation;
    first.reason = Reason::closed;
    first.elapsed = {};
    // errors.md, runs, closed: look up the first error
    first.text = "an earlier error closed this communicator; form a new one. First error: " + first.text;
    return first;
}

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
