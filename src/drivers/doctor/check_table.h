// SPDX-License-Identifier: Apache-2.0
// The checks of `atp doctor`, in the order of docs/reference/doctor.md. tools/write_reference reads the rows of
// check_table.cc, and writes the table of that page.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace atp::doctor {

enum class CheckName : std::uint8_t {
    kernel,
    clock,
    frequency,
    cores,
    multicast,
    socket,
    receive_buffer,
    send_buffer,
    mmsg,
    gso,
    gro,
    ecn,
    no_fragments,
    reachability,
    version,
    tree,
    round_trip,
    aggregators,
    lanes,
    in_kernel,
    path_mtu,
    symmetry,
    short_packets,
    long_packets,
    marks,
    switch_drops,
    emulation,
    peer,
    kernel_drops,
    pairs,
};

struct CheckRow {
    CheckName check;
    std::string_view name;      // as printed; checks of a path add the address
    std::string_view examines;  // for the page
};

// One row for each check, in the order of the enumeration.
[[nodiscard]] std::span<const CheckRow> check_table();
[[nodiscard]] std::string name_of(CheckName check);

}  // namespace atp::doctor
