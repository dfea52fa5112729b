// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "switchml/switch.h"
#include "wire/address.h"
#include "wire/datagram.h"
#include "wire/outbox.h"

namespace atp::switchml {

// What a SwitchML switch does with a datagram: a SwitchML switch, and for each stream the addresses of its workers. A
// stream is a job of the SwitchML switch, which this endpoint numbers. The messages that admit and dismiss streams are
// JSON (docs/spec/switchml.md#over-sockets).
//
// SwitchML packets have no token. The source address replaces the token: a packet that does not come from the address
// of its worker is dropped.
//
// Ownership: owns the pool, allocated at construction, and the streams. Borrows datagrams and the outbox for the
//   duration of a call, but the outbox may refer to datagrams until it is flushed.
// Calling order: handle_batch() for received datagrams, then flush the outbox; only then handle_batch() again.
// Threads: none.
// Failure: the constructor throws std::bad_alloc. A stream for which there is no room is refused with the reason.
//   Packets that belong to no stream are dropped and counted.
class SwitchEndpoint {
  public:
    explicit SwitchEndpoint(const SwitchConfig& config) : switch_(config) {}

    void handle_batch(std::span<const wire::Datagram> batch, wire::Outbox& out, Time now);

    // One JSON object with the key "switchml": the pool and its streams.
    [[nodiscard]] std::string report() const;

  private:
    struct Stream {
        std::string name;  // that rank 0 drew
        std::vector<wire::Address> workers;
        Time used_at{};
    };

    void handle_packet(std::span<std::byte> bytes, const wire::Address& from, wire::Outbox& out, Time now);
    void handle_message(std::span<const std::byte> bytes, const wire::Address& from, wire::Outbox& out, Time now);
    // Returns the reason of a refusal; empty: the stream has a number.
    [[nodiscard]] std::string admit(JobConfig job, const Stream& stream);
    void dismiss(std::string_view name);
    [[nodiscard]] std::optional<std::uint8_t> number_of(std::string_view name) const;
    [[nodiscard]] bool names_its_sender(std::span<const std::byte> bytes, const wire::Address& from) const;

    Switch switch_;
    std::array<std::optional<Stream>, 256> streams_;
    std::uint8_t next_ = 0;        // streams take numbers in turn, so a number is not used again soon
    std::uint64_t strangers_ = 0;  // dropped: the source address differs from that of the worker that the packet names
};

// Slots of one pool with this memory.
[[nodiscard]] std::uint32_t slots_in(std::uint64_t memory_bytes, std::uint16_t lanes);

}  // namespace atp::switchml
