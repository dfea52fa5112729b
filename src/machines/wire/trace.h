// SPDX-License-Identifier: Apache-2.0
// The trace of packets as text, one line for each event of a packet. Switches, ranks and the simulator write this
// format, and `atp trace` reads it.
//
//   12.034us s0>p0 sent GRADIENT job=650de528 token=... ch=0 seq=17 ...
//   13.100us s0 completed GRADIENT job=650de528 ...
//   14.000us s0 restarts empty
//
// A line has the time, the place (a node, or the link from one node to another), the event, and the packet. A note has
// no packet. The simulator writes virtual time; a process writes the time since the start of its host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/time.h"
#include "wire/address.h"

namespace atp::wire {

// Receives what happens to packets. The caller may be on the packet path, so an implementation copies and returns.
//
// Ownership: borrows the bytes for the call. `what` is a literal. Threads: one thread calls one sink.
class TraceSink {
  public:
    virtual ~TraceSink() = default;

    // `peer`: the other end of the link that the packet passed; nullptr: the event happened at this node.
    // `arrived`: the packet came from the peer; otherwise it goes there.
    virtual void packet(Time now, std::string_view what, std::span<const std::byte> bytes, const Address* peer,
                        bool arrived) = 0;

  protected:
    TraceSink() = default;
    TraceSink(const TraceSink&) = default;
    TraceSink& operator=(const TraceSink&) = default;
};

// Appends one line with its line end.
void append_trace_line(std::string& text, Time now, std::string_view where, std::string_view what,
                       std::string_view packet = {});

// A packet, a control message or other bytes, described on one line: "JOIN job=650de528 token=0x5eed ch=0".
[[nodiscard]] std::string describe_datagram(std::span<std::byte> datagram);

// One line, divided. All views point into the line.
struct TraceLine {
    double time_us = 0;
    std::string_view where{};
    std::string_view what{};    // "sent", "sent marked", "completed"
    std::string_view type{};    // GRADIENT, JOIN, ...; empty: a note
    std::string_view fields{};  // the rest of the packet

    // The text after "NAME="; nullopt: the packet has no such field.
    [[nodiscard]] std::optional<std::string_view> value(std::string_view name) const;
    [[nodiscard]] std::optional<std::uint32_t> job() const;
    // The number after "NAME="; nullopt: the packet has no such field, or it is no decimal number.
    [[nodiscard]] std::optional<std::uint64_t> number(std::string_view name) const;
};
// nullopt: not a line of a trace.
[[nodiscard]] std::optional<TraceLine> parse_trace_line(std::string_view line);

// Which lines a reader shows. An unset condition accepts all lines.
struct TraceFilter {
    std::optional<std::uint32_t> job{};
    std::optional<std::uint64_t> channel{};
    std::optional<std::uint64_t> seq{};
    std::optional<std::string> type{};   // in capital letters
    std::optional<std::string> what{};   // the whole event
    std::optional<std::string> where{};  // a part of the place

    [[nodiscard]] bool accepts(const TraceLine& line) const;
};

}  // namespace atp::wire
