// SPDX-License-Identifier: Apache-2.0
// What each counter of a report counts, in the order of its table.
#pragma once

#include <array>
#include <string_view>

#include "client/switch_report.h"
#include "control/join_tree.h"
#include "net/udp_report.h"
#include "protocol/server.h"
#include "protocol/switch.h"

namespace atp::metrics {

// tools/write_events writes the help of switch counters from src/events.toml.
// clang-format off
constexpr std::array<std::string_view, protocol::switch_fields.size()> switch_help{
    "Gradients that were the first of a fragment",
    "Gradients that were a further one of a fragment",
    "Gradients that were the last one of a fragment, whose sum left the switch",
    "Gradients of the only worker below this switch, which need no aggregator",
    "Gradients whose aggregator served another fragment; forwarded unaggregated. If it grows: above 5 % of claimed, "
    "raise --memory",
    "Gradients that a worker sent around the aggregators. If it grows: the server requested it after losses; elements"
    " exceed 21 / workers with fixed scaling (scale 10⁸); or, with dynamic scaling, tensors of up to 256 floats, "
    "which are sent as floats",
    "Gradients that arrived after their aggregator was freed; forwarded. If it grows: packets are lost",
    "Gradients that the sum already includes; dropped. If it grows: packets are duplicated or resent",
    "Gradients that a complete sum already includes; the sum is sent again. If it grows: packets are lost above this "
    "switch",
    "Resends forwarded as they arrived. If it grows: packets are lost: run atp doctor",
    "Resends forwarded with the partial sum. If it grows: packets are lost: run atp doctor",
    "Aggregators that a passing result freed",
    "Aggregators abandoned, which a result freed. If it grows: workers were killed, or results were lost; sums stay "
    "correct",
    "Aggregators abandoned, which a gradient claimed. If it grows: workers were killed, or results were lost; sums "
    "stay correct",
    "Aggregators of a finished fragment that a gradient claimed. If it grows: results were lost; sums stay correct",
    "Requests of the server for a partial sum that the switch had. If it grows: collisions, or packets are lost",
    "Requests of the server for a partial sum that the switch had not. If it grows: collisions, or packets are lost",
    "Gradients that the switch cannot add, and forwards: too many lanes; no such aggregator; float32; another length,"
    " kind or operation than in the aggregator; only some workers already included. If it grows: packets are longer "
    "than --lanes, or ranks call different operations",
    "Packets that need no action here: PROBE, WAIT, other levels",
    "Packets with a congestion mark. If it grows: a queue is congested; windows shrink",
    "Sums that left 32 bits (int16 and int8 lanes: 16 and 8 bits), which workers send again unaggregated. If it "
    "grows: values are too large for the scale",
    "Requests whose frame has no room for the partial sum, with --xdp and --p4; resends recover the fragment. If it "
    "grows: collisions on devices such as veth on Linux 6.6 and later, where the kernel also loses answers that fit, "
    "unless the other end has an XDP program",
    "Packets with the right token that did not come from the member or parent that may send them, whose channel still"
    " lacks a member, or that have another window. If it grows: a host forges packets, or the switch restarted",
    "Packets for a job this switch does not know (a wrong token counts as an unknown job). If it grows: a job ended "
    "in the last seconds; with --xdp also not_admitted; otherwise look for the sender",
};
// clang-format on
// End of the written part.

// tools/write_events writes the help of shard counters from src/events.toml.
// clang-format off
constexpr std::array<std::string_view, client::shard_fields.size()> shard_help{
    "Packets without a channel here or a receiver, or that the send queue refused. If it grows: jobs ended, or a tree"
    " is not yet ready",
    "Results sent once, to a group",
    "ACKs without lanes that were sent in lists; copies do not count",
    "Packets that carried them. gathered_acks divided by this is the average list (up to 16)",
    "Control messages that do not decode. If it grows: another program sends to this port",
    "Control messages dropped because too many waited, or because too many addresses without a cookie asked; they are"
    " repeated. If it grows: a host floods the port, or very many jobs join at once",
    "JOINs without a valid cookie, which their sender repeats with one. If it grows: one for each channel of a rank "
    "in one to two minutes is normal; many: a host sends others' addresses",
    "Control messages of hosts outside --clients. If it grows: a job's hosts are not in the list, or others try",
};
// clang-format on
// End of the written part.

// tools/write_events writes the help of tree counters from src/events.toml.
// clang-format off
constexpr std::array<std::string_view, control::tree_fields.size()> tree_help{
    "JOINs received",
    "JOINs refused, and channels that could not open. If it grows: the worker prints why",
    "Members that sent no JOIN for --hold (3 s). If it grows: packets no longer arrive",
    "Members whose host reported that their process ended. If it grows: workers are killed",
    "Members that sent LEAVE",
    "ICMP messages that quote no packet of a channel here, or one to no neighbour. If it grows: a host forges them, "
    "or a job has just ended",
    "Control messages that cannot have come from a real neighbour. If it grows: a host forges them, or a job has just"
    " ended",
    "Control messages whose code is missing or wrong. If it grows: a rank has another key, or a host forges them",
    "JOINs and JOINEDs older than their sender's last one. If it grows: they are repeated, reordered or replayed",
    "JOINs of new channels that wait: in its first --hold, a switch keeps half of its tables for jobs from before its"
    " restart. If it grows: many jobs form after a restart",
};
// clang-format on
// End of the written part.

// tools/write_events writes the help of udp counters from src/events.toml.
// clang-format off
constexpr std::array<std::string_view, net::udp_fields.size()> udp_help{
    "Packets received",
    "Bytes received",
    "System calls that received",
    "Packets dropped because the receive buffer was full. If it grows: raise net.core.rmem_max, use --threads or "
    "--pin",
    "Packets longer than the protocol's longest. If it grows: another program sends to this port",
    "Datagrams with the CE mark. If it grows: a queue is congested",
    "Packets sent",
    "Bytes sent",
    "System calls that sent",
    "Packets that the kernel refused to send. If it grows: longer than the interface permits, or no route to a worker",
    "Packets dropped because kernel and send queue were full. If it grows: raise net.core.wmem_max",
};
// clang-format on
// End of the written part.

// tools/write_events writes the help of kernel counters from src/events.toml.
// clang-format off
constexpr std::array<std::string_view, client::kernel_fields.size()> kernel_help{
    "Packets of more than 352 lanes. If it grows: use --lanes 352 for the switch that workers name",
    "Packets with a wrong checksum. If it grows: a cable or network card is faulty, or a host forges packets",
    "JOINs answered, of jobs for which the table has no entry, four per worker, channel and second once the job is "
    "ready; the job's packets count as forged. If it grows: raise --jobs, or look for a sender of false JOINs",
    "Bytes of frames that it sent as copies of a result to further members, of the jobs it serves now",
    "Frames for all members that it did not copy, because their job had sent fewer bytes through it. If it grows: not"
    " every worker of a job passes this switch, or a host makes up members",
};
// clang-format on
// End of the written part.

// tools/write_events writes the help of server counters from src/events.toml.
// clang-format off
constexpr std::array<std::string_view, protocol::server_fields.size()> server_help{
    "Fragments completed",
    "Additions that the server made instead of the network, of completed fragments",
    "Gradients of fragments in progress",
    "Gradients that the sum already includes. If it grows: packets are duplicated or resent",
    "Gradients that replace an earlier sum of some of their workers. If it grows: packets are lost",
    "Gradients that share only some workers with the sum, and are requested again. If it grows: packets are lost",
    "Gradients with the OVERFLOW flag. If it grows: values are too large for the scale",
    "Fragments summed as floats. If it grows: tensors are small, or numbers fit no integer at their scale",
    "Fragments with a collision. If it grows: many: raise --memory",
    "Base slots moved to another aggregator. If it grows: collisions",
    "Fragments acknowledged with the congestion flag. If it grows: a queue is congested; windows shrink",
    "Results sent",
    "Results sent again. If it grows: results are lost",
    "Requests for a gradient. If it grows: packets are lost, or numbers fit no integer at their scale",
    "Requests to wait. If it grows: some workers are later than others",
    "Requests for a partial sum. If it grows: collisions, or packets are lost",
    "Packets of fragments whose result every worker has. If it grows: packets are resent or late",
    "Packets of fragments that no worker can have reached. If it grows: a sender is faulty, or a host forges packets",
    "Packets dropped: of another job, token or channel. If it grows: a host forges packets, or a job has just ended",
    "Packets dropped: undecodable, or of a shape that this channel or fragment never has. If it grows: another "
    "program sends to this port, or packets are damaged",
    "Packets dropped: of another operation than the fragment's. If it grows: ranks call different operations",
    "Sums dropped for a wrong audit word. If it grows: a switch or a host damages sums",
    "READYs by which workers report that they take the parts of an all-gather",
    "Answers dropped because the queue was full; workers ask again. If it grows: the server's thread has too much to "
    "do",
    "Packets to the server",
    "Bytes of the UDP payload of these packets",
    "Gradients dropped because their sums found no memory; workers send again. If it grows: --server-memory is too "
    "small for the jobs",
};
// clang-format on
// End of the written part.

}  // namespace atp::metrics
