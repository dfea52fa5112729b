// SPDX-License-Identifier: Apache-2.0
#include "doctor/check_table.h"

#include <array>
#include <cstddef>

namespace atp::doctor {
namespace {

// tools/write_reference reads this array: each value is an enumerator or a literal.
constexpr std::array<CheckRow, 30> rows{{
    {CheckName::kernel, "kernel", "the kernel's version, and which calls for many packets at once it therefore has"},
    {CheckName::clock, "clock", "the clock source, and how long it takes to read the time"},
    {CheckName::frequency, "frequency", "the governors of the cores, because idle cores may be slow"},
    {CheckName::cores, "cores", "cores and processor time that affinity and control group permit"},
    {CheckName::multicast, "multicast", "interfaces that can receive groups, for results by multicast"},
    {CheckName::socket, "socket", "only if it fails: whether this host lets a process open a UDP socket"},
    {CheckName::receive_buffer, "receive buffer", "bytes that the kernel grants for packets that arrive"},
    {CheckName::send_buffer, "send buffer", "bytes that the kernel grants for packets that leave"},
    {CheckName::mmsg, "mmsg", "whether one system call may send or receive many packets"},
    {CheckName::gso, "gso", "whether the kernel divides one buffer into packets"},
    {CheckName::gro, "gro", "whether the kernel joins packets that arrive to one buffer"},
    {CheckName::ecn, "ecn", "whether the kernel sets the ECN bits of packets that leave, and reports those of others"},
    {CheckName::no_fragments, "no-fragments", "whether packets may be sent so that no router divides them"},
    {CheckName::reachability, "reachability", "whether the switch answers"},
    {CheckName::version, "version", "whether the switch has the version of this host"},
    {CheckName::tree, "tree", "whether the switch's parent answers, and whether this host should name another switch"},
    {CheckName::round_trip, "round trip", "the least, median and longest of 20 round trips"},
    {CheckName::aggregators, "aggregators",
     "for a switch in user space: the tables on the path to the root, compared with the window"},
    {CheckName::lanes, "lanes",
     "for a switch in user space: the lanes of its aggregators, compared with the longest packets that pass"},
    {CheckName::in_kernel, "inside the kernel",
     "for a kernel switch: interfaces, oversized and damaged packets, jobs of which only a part passes, jobs without "
     "room"},
    {CheckName::path_mtu, "path MTU",
     "the longest packet that arrives and returns, compared with the interface and with packets that fill an "
     "aggregator"},
    {CheckName::symmetry, "symmetry", "which direction loses longer packets"},
    {CheckName::short_packets, "short packets",
     "how many of 1,000 short questions are lost in which direction, duplicated or overtaken"},
    {CheckName::long_packets, "long packets",
     "how many of 200 long questions are lost in which direction, duplicated or overtaken"},
    {CheckName::marks, "ECN", "whether the two ECN bits return as they were sent"},
    {CheckName::switch_drops, "switch drops", "packets that the switch or its kernel dropped, and JOINs it refused"},
    {CheckName::emulation, "emulation", "whether the switch's emulated ports drop packets on purpose"},
    {CheckName::peer, "peer", "whether rank 0 accepts TCP connections"},
    {CheckName::kernel_drops, "kernel drops", "UDP and backlog drops of this host, since boot and during the run"},
    {CheckName::pairs, "pairs", "with `--rank`: whether every host reaches every other; a failure names the ranks"},
}};

consteval bool in_order() {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (static_cast<std::size_t>(rows[i].check) != i) return false;
    }
    return rows.back().check == CheckName::pairs;
}
static_assert(in_order());

}  // namespace

std::span<const CheckRow> check_table() { return rows; }

std::string name_of(CheckName check) { return std::string(rows[static_cast<std::size_t>(check)].name); }

}  // namespace atp::doctor
