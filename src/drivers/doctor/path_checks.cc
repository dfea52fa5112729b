// SPDX-License-Identifier: Apache-2.0
#include "doctor/path_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/counters.h"
#include "doctor/path_findings.h"
#include "net/udp_report.h"
#include "protocol/channel.h"
#include "protocol/switch.h"
#include "wire/format.h"

namespace atp::doctor {
namespace {

// A worker's timer expires after 1 ms at the earliest (docs/spec/worker.md): a longer median slows a job noticeably.
constexpr Duration longest_usual_round_trip = std::chrono::milliseconds(2);
// Resolution of measured sizes, in bytes.
constexpr std::uint32_t found_to_within = 8;
// Three newer results make a worker resend (docs/spec/worker.md#overtaken-fragments).
constexpr std::uint32_t newer_that_resend = 3;
constexpr double failing_loss = 0.01;
constexpr double notable_drop_share = 1e-4;

std::uint32_t mtu_of(std::uint32_t payload_bytes, wire::Family family) {
    return payload_bytes + (family == wire::Family::ipv6 ? 48 : 28);
}

// Lanes that every switch in the path can add; switches without aggregators forward everything.
std::uint32_t lanes_added(const PathFacts& facts) {
    std::uint32_t lanes = ATP_MAX_LANES;
    for (const wire::PathSwitch& next : facts.welcome.path) {
        if (next.aggregators != 0) lanes = std::min<std::uint32_t>(lanes, next.lanes);
    }
    return lanes;
}

constexpr std::uint32_t ethernet_mtu = 1500;
constexpr std::uint32_t longest_usual_mtu = 9216;

std::string host_of(const wire::Address& address) {
    const std::string text = to_string(address.with_port(0));
    std::string host = text.substr(0, text.rfind(':'));
    std::erase_if(host, [](char each) { return each == '[' || each == ']'; });
    return host;
}

std::string raise_interface(const PathFacts& facts, std::uint32_t mtu) {
    return fmt::format("raise the MTU of this host's interface: `ip link set dev {} mtu {}`",
                       facts.interface.empty() ? "DEVICE" : facts.interface, mtu);
}

bool failed_with(const PathFacts& facts, Reason reason) { return facts.silence && facts.silence->reason == reason; }

double share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// A job runs whose gradients come from switches below.
bool has_leaves(const client::SwitchReport& report) {
    return std::ranges::any_of(report.shards, [](const client::ShardReport& shard) {
        return std::ranges::any_of(shard.channels, [](const auto& channel) { return channel.level == 1; });
    });
}

// Where most of the loss is.
std::string direction_of_loss(const TrainReport& train) {
    constexpr std::uint32_t dominates = 4;
    if (train.arrived && train.lost_there() >= dominates * train.lost_back()) return "from this host to the switch";
    if (train.arrived && train.lost_back() >= dominates * train.lost_there()) return "from the switch to this host";
    return "in both directions of the path";
}

}  // namespace

Finding check_reachability(const PathFacts& facts) {
    Finding finding{.name = named(CheckName::reachability, facts), .found = "it answers"};
    // A switch that sends a refusal is reachable.
    if (!facts.silence || failed_with(facts, Reason::rejected) || failed_with(facts, Reason::version_mismatch)) {
        return finding;
    }
    finding.status = Status::fail;
    finding.found = to_string(*facts.silence);
    finding.fix = failed_with(facts, Reason::refused)
                      ? fmt::format(
                            "no process listens on that port: start `atp switch --listen "
                            "0.0.0.0:{}` there, or correct the address",
                            facts.address.port())
                  : failed_with(facts, Reason::unreachable)
                      ? "this host has no route to that address: correct the address or the routes (`ip route get`)"
                      : fmt::format(
                            "check that `atp switch` runs there and listens on that address, and that every firewall "
                            "in the path passes UDP port {} in both directions",
                            facts.address.port());
    return finding;
}

Finding check_version(const PathFacts& facts, const std::string& own_software) {
    Finding finding{.name = named(CheckName::version, facts), .found = facts.welcome.software};
    if (failed_with(facts, Reason::version_mismatch)) {
        finding.status = Status::fail;
        finding.found = fmt::format("{}; here is {}", facts.silence->text, own_software);
        finding.fix = "run the same version of atp on workers and switches";
    } else if (facts.welcome.software != own_software) {
        finding.status = Status::warn;
        finding.found = fmt::format("it runs {}, this host runs {}; both speak the same version of the protocol",
                                    facts.welcome.software, own_software);
        finding.fix = "install the same version on all hosts at the next restart";
    }
    return finding;
}

Finding check_tree(const PathFacts& facts) {
    Finding finding{.name = named(CheckName::tree, facts)};
    if (failed_with(facts, Reason::rejected)) {
        finding.status = Status::fail;
        finding.found = facts.silence->text;
        const bool parent = facts.report && !facts.report->parent.empty();
        finding.fix = parent ? fmt::format("firewalls must pass UDP between this switch and {}", facts.report->parent)
                             : "start its parent, or correct --parent of this switch";
        return finding;
    }
    const std::size_t above = facts.welcome.path.size() - std::min<std::size_t>(facts.welcome.path.size(), 1);
    finding.found = above == 0 ? "top switch: it has no parent" : fmt::format("{} above it", above);
    if (facts.report && !facts.report->parent.empty()) {
        finding.found += fmt::format(", parent {} answers", facts.report->parent);
    }
    if (above == 0 && facts.report && has_leaves(*facts.report)) {
        add(finding, "it adds the sums of other switches",
            "let the workers of this host name the switch of their rack, if it has one: gradients of a worker that "
            "names the last switch reach it unaggregated");
    }
    if (facts.routers && facts.routers_to_parent && *facts.routers_to_parent < *facts.routers) {
        add(finding,
            fmt::format("{} routers lie between this host and this switch, but only {} before its parent",
                        *facts.routers, *facts.routers_to_parent),
            "name the switch of this host's rack: this one is in another rack");
    }
    return finding;
}

Finding check_round_trip(const PathFacts& facts) {
    const auto& trips = facts.round_trips;
    const Duration median = trips[trips.size() / 2];
    Finding finding{
        .name = named(CheckName::round_trip, facts),
        .found = fmt::format("{:.0f} / {:.0f} / {:.0f} us (least, median, most of {})", to_microseconds(trips.front()),
                             to_microseconds(median), to_microseconds(trips.back()), trips.size())};
    if (median <= longest_usual_round_trip) return finding;
    finding.status = Status::warn;
    finding.found += ": long for aggregation in the network";
    finding.fix = "move the switch closer to the workers, and check that no other process uses its cores";
    return finding;
}

Finding check_aggregators(const PathFacts& facts) {
    Finding finding{.name = named(CheckName::aggregators, facts), .found = ""};
    std::optional<std::uint32_t> least;
    for (const wire::PathSwitch& next : facts.welcome.path) {
        finding.found += fmt::format("{}{}", finding.found.empty() ? "" : ", above it ", next.aggregators);
        if (next.aggregators != 0) least = std::min(least.value_or(UINT32_MAX), next.aggregators);
    }
    finding.found += " for a channel";
    if (!least) {
        finding.status = Status::warn;
        finding.found += ": nothing is aggregated in the network";
        finding.fix =
            "let workers address a switch with --memory above 0; a switch without aggregators only hosts parameter "
            "servers";
        return finding;
    }
    // With fewer aggregators than packets in flight, a channel collides with itself.
    const std::uint32_t window = protocol::usual_window(std::min(lanes_of(facts), lanes_added(facts)));
    if (*least < window) {
        finding.status = Status::warn;
        finding.found += fmt::format(": fewer than the packets that a channel may have in flight ({})", window);
        finding.fix = "restart the switch with more --memory, or with fewer --lanes or --threads";
    }
    return finding;
}

Finding check_path_mtu(const PathFacts& facts) {
    Finding finding{.name = named(CheckName::path_mtu, facts)};
    const wire::Family family = facts.address.family();
    const std::uint32_t interface = mtu_of(facts.interface_payload_bytes, family);
    const std::uint32_t found = mtu_of(facts.found_payload_bytes, family);
    if (facts.found_payload_bytes == 0) {
        finding.status = Status::fail;
        finding.found = "short packets arrive, but packets of 1,232 bytes do not";
        finding.fix = "look for a link or tunnel in the path with an MTU below 1,280";
    } else if (facts.found_payload_bytes + found_to_within < facts.interface_payload_bytes) {
        finding.status = Status::warn;
        finding.found = fmt::format("{}, but the interface has {}: longer packets are lost", found, interface);
        finding.fix = fmt::format(
            "find the narrow link (`tracepath -n {}`) and raise its MTU to {}. If the network cannot carry that, set "
            "the "
            "MTU of the interfaces of all hosts to {}",
            host_of(facts.address), interface, found);
    } else {
        finding.found =
            fmt::format("{}, equal to the interface; packets of {} bytes pass", interface, facts.found_payload_bytes);
        const std::uint32_t needed = mtu_of(ATP_HEADER_BYTES + lanes_added(facts) * ATP_LANE_BYTES, family);
        if (interface < needed && needed <= longest_usual_mtu) {
            finding.status = Status::warn;
            finding.found += fmt::format(", but packets that fill an aggregator need {}", needed);
            finding.fix = raise_interface(facts, std::max(needed, ethernet_mtu));
        }
    }
    return finding;
}

Finding check_symmetry(const PathFacts& facts) {
    Finding finding{.name = named(CheckName::symmetry, facts),
                    .found = "packets of one length pass in both directions"};
    if (!facts.long_question_arrives) return finding;
    if (*facts.long_question_arrives) {
        finding.status = Status::warn;
        finding.found =
            fmt::format("packets of {} bytes reach the switch, but do not return", facts.interface_payload_bytes);
        finding.fix = "raise the MTU of the switch's interface, or of the path from it";
    } else {
        finding.found = "long packets are lost in the direction to the switch";
    }
    return finding;
}

Finding check_lanes(const PathFacts& facts) {
    const std::uint32_t pass = lanes_of(facts);
    const std::uint32_t aggregate = lanes_added(facts);
    Finding finding{.name = named(CheckName::lanes, facts),
                    .found = fmt::format("the path carries packets of {} lanes, aggregators hold {}", pass, aggregate)};
    if (facts.stays_on_this_host) {
        finding.found += "; other hosts may carry fewer, so run this on a worker";
    } else if (control::usual_lanes(aggregate) < pass) {
        finding.status = Status::warn;
        finding.found +=
            ": workers send at most the lanes of an aggregator; longer packets (--lanes) would be forwarded "
            "unaggregated";
        finding.fix = fmt::format("start every switch of the tree with --lanes {}", pass);
    } else if (aggregate > pass + pass / 8) {
        finding.status = Status::warn;
        finding.found += fmt::format(": {:.0f} % of the memory of the aggregators is unused",
                                     100.0 * (1.0 - static_cast<double>(pass) / aggregate));
        const std::uint32_t needed = mtu_of(ATP_HEADER_BYTES + aggregate * ATP_LANE_BYTES, facts.address.family());
        finding.fix =
            fmt::format("{}. If the network cannot carry that, start every switch of the tree with --lanes {}",
                        raise_interface(facts, std::max(needed, ethernet_mtu)), pass);
    }
    return finding;
}

Finding check_train(const PathFacts& facts, CheckName check, const TrainReport& train) {
    Finding finding{.name = named(check, facts),
                    .found = fmt::format("{} of {} lost, {} duplicated, {} reordered (by at most {})", train.lost(),
                                         train.sent, train.repeated, train.overtaken, train.most_newer)};
    if (train.lost() != 0 && train.arrived) {
        finding.found +=
            fmt::format("; {} on the way to the switch, {} on the way back", train.lost_there(), train.lost_back());
    }
    const bool reordered = train.most_newer >= newer_that_resend;
    if (train.lost() != 0) {
        finding.status = share(train.lost(), train.sent) >= failing_loss ? Status::fail : Status::warn;
        finding.fix = fmt::format(
            "look for drops {} (`ip -s link`, `ethtool -S`, `tc -s qdisc`, `atp stats` of the switch), for full "
            "buffers, "
            "faulty cables and policers",
            direction_of_loss(train));
    }
    if (reordered || train.repeated != 0) {
        if (finding.status == Status::ok) finding.status = Status::warn;
        finding.fix += finding.fix.empty() ? "" : "; ";
        finding.fix += reordered ? "keep the packets of one flow on one path (no per-packet balancing, no bonding "
                                   "mode balance-rr): a packet that three later ones overtake is resent needlessly"
                                 : "look for two paths that both deliver the packets (bonding, mirrored ports, loops)";
    }
    return finding;
}

Finding check_marks(const PathFacts& facts) {
    Finding finding{.name = named(CheckName::marks, facts)};
    if (!facts.reads_marks) {
        finding.status = Status::warn;
        finding.found = "this kernel does not report the ECN bits";
        return finding;
    }
    const TrainReport& train = *facts.short_packets;
    const auto count = [&](wire::Ecn ecn) { return train.marks[static_cast<std::size_t>(ecn)]; };
    const std::uint32_t congested = count(wire::Ecn::congested);
    const std::uint32_t kept = count(wire::Ecn::capable_0);
    finding.found = fmt::format("of {} packets sent as ECT(0), {} returned unchanged and {} marked", train.answered,
                                kept, congested);
    if (congested != 0) {
        finding.status = Status::warn;
        finding.found += ": a queue in the path is long";
        finding.fix = "find the loaded link (`tc -s qdisc`); marks halve the windows of the workers";
    } else if (kept != train.answered) {
        finding.status = Status::warn;
        finding.found +=
            ": a device in the path clears the ECN bits, so congestion causes packet loss instead of marks";
        finding.fix = "configure routers and tunnels in the path to keep the two ECN bits of the IP header";
    }
    return finding;
}

Finding check_switch_drops(const PathFacts& facts) {
    net::UdpCounters udp;
    std::uint64_t joins_refused = 0;
    for (const client::ShardReport& shard : facts.report->shards) {
        add_counters(net::udp_fields, shard.udp, udp);
        joins_refused += shard.tree.refused;
    }
    const std::uint64_t arrived = udp.received_packets + udp.dropped_packets;
    Finding finding{
        .name = named(CheckName::switch_drops, facts),
        .found = fmt::format(
            "its kernel dropped {} of {} packets (receive buffer full) and refused to send {}; it refused {} JOINs",
            udp.dropped_packets, arrived, udp.refused_packets, joins_refused)};
    if (share(udp.dropped_packets, arrived) > notable_drop_share) {
        finding.status = Status::warn;
        finding.fix =
            "on the host of the switch, raise net.core.rmem_max, or restart the switch with more --threads or with "
            "--pin";
    }
    if (udp.refused_packets != 0) {
        finding.status = Status::warn;
        finding.fix += finding.fix.empty() ? "" : "; ";
        finding.fix += "check the MTU of the switch's interface, and its route to each worker";
    }
    return finding;
}

Finding check_emulation(const PathFacts& facts) {
    const std::optional<double> loss = client::emulated_loss(*facts.report);
    Finding finding{.name = named(CheckName::emulation, facts), .found = "none"};
    if (!loss) return finding;
    finding.status = Status::warn;
    finding.found = fmt::format(
        "this switch emulates ports and drops {:.4g} % of gradients and results in each direction; the packets of this "
        "examination bypass these ports",
        100 * *loss);
    finding.fix = "in production, start it without --port-rate, --queue, --ecn and --loss";
    return finding;
}

std::vector<Finding> check_path(const PathFacts& facts, const std::string& own_software) {
    std::vector<Finding> findings{check_reachability(facts)};
    if (failed_with(facts, Reason::version_mismatch)) findings.push_back(check_version(facts, own_software));
    if (failed_with(facts, Reason::rejected)) findings.push_back(check_tree(facts));
    if (facts.silence) return findings;
    findings.push_back(check_version(facts, own_software));
    findings.push_back(check_tree(facts));
    findings.push_back(check_round_trip(facts));
    const client::ShardReport* const kernel = facts.report ? client::kernel_of(*facts.report) : nullptr;
    findings.push_back(kernel != nullptr ? check_kernel(facts, *kernel) : check_aggregators(facts));
    findings.push_back(check_path_mtu(facts));
    if (facts.found_payload_bytes != 0) {
        findings.push_back(check_symmetry(facts));
        if (kernel == nullptr) findings.push_back(check_lanes(facts));
    }
    if (facts.short_packets) findings.push_back(check_train(facts, CheckName::short_packets, *facts.short_packets));
    if (facts.long_packets) findings.push_back(check_train(facts, CheckName::long_packets, *facts.long_packets));
    if (facts.short_packets) findings.push_back(check_marks(facts));
    if (facts.report) {
        findings.push_back(check_switch_drops(facts));
        findings.push_back(check_emulation(facts));
    }
    return findings;
}

Finding check_peer(const std::string& name, const Result<Duration>& connected) {
    Finding finding{.name = fmt::format("{} {}", name_of(CheckName::peer), name)};
    if (connected) {
        finding.found = fmt::format("accepts TCP connections after {:.0f} us", to_microseconds(*connected));
        return finding;
    }
    finding.status = Status::fail;
    finding.found = to_string(connected.error());
    finding.fix = connected.error().reason == Reason::refused
                      ? "the host is up, but no process listens on that port: start rank 0 first, or correct the "
                        "rendezvous address"
                      : "check that the host is up, and that every firewall in the path passes that TCP port";
    return finding;
}

}  // namespace atp::doctor
