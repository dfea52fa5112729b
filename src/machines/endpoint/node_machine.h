// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "control/hello_client.h"
#include "wire/address.h"
#include "wire/control.h"
#include "wire/datagram.h"
#include "wire/outbox.h"

namespace atp::endpoint {

struct NodeMachineConfig {
    std::uint64_t id = 0;     // random, new at each start
    wire::PathSwitch self{};  // this switch in a WELCOME; the machine sets `id`
    wire::Address parent{};   // no family: none
    std::string software{};   // "atp 0.1.0"
    std::uint32_t shards = 1;
};

// What the driver does with a message.
struct NodeTask {
    enum class Kind : std::uint8_t {
        none,         // nothing: the machine has answered or dropped it
        deliver,      // pass it to shard `shard`
        take_report,  // call handle_report() with the state of the switch as text
    };
    Kind kind = Kind::none;
    std::uint32_t shard = 0;
};

struct NodeCounters {
    std::uint64_t hellos = 0;  // received
    std::uint64_t answered = 0;
    std::uint64_t too_long = 0;  // answers that the limit of amplification kept back
    std::uint64_t no_room = 0;   // answers that the outbox had no room for
    std::uint64_t ignored = 0;   // messages that are not for a switch, or do not decode
};

// What one switch answers as a whole: HELLO, STATS and messages of another version. It finds the shard of every
// message that belongs to a channel.
//
// Ownership: borrows the client of the parent, if there is one; it must outlive the machine. Owns the texts of the last
//   eight reports.
// Calling order: set_parent() first, if the switch has a parent. Then handle_message(); if it returns take_report,
//   handle_report() before the next message.
// Threads: none.
// Failure: a message that does not decode is dropped. An answer that is longer than its question is not sent, so that a
//   forged sender gains nothing.
class NodeMachine {
  public:
    explicit NodeMachine(const NodeMachineConfig& config);

    void set_parent(const control::HelloClient& parent) { parent_ = &parent; }
    // `ecn`: of the datagram; an answer to a HELLO carries the same bits, so both directions are measured.
    [[nodiscard]] NodeTask handle_message(std::span<const std::byte> bytes, const wire::Address& from, wire::Ecn ecn,
                                          wire::Outbox& out);
    // All parts of a report describe the moment of the request for part 0.
    void handle_report(std::string text, wire::Outbox& out);

    [[nodiscard]] bool parent_answers() const { return parent_ != nullptr && parent_->answers(); }
    [[nodiscard]] const NodeCounters& counters() const { return counters_; }

    template <class Archive>
    void persist(Archive& archive) {
        archive.value(counters_), archive.value(next_report_);
        for (KeptReport& kept : reports_) {
            std::uint64_t size = kept.text.size();
            archive.value(kept.number), archive.value(size);
            kept.text.resize(size);
            archive.bytes(std::as_writable_bytes(std::span(kept.text)));
        }
    }

  private:
    static constexpr std::size_t kept_reports = 8;

    struct KeptReport {
        std::uint32_t number = 0;  // 0: none
        std::string text;
    };
    // A request whose report the driver is about to supply.
    struct ReportRequest {
        wire::Stats stats;
        wire::Address from;
        std::size_t bytes = 0;
    };

    [[nodiscard]] std::optional<std::uint32_t> shard_of(std::span<const std::byte> bytes) const;
    void refuse_version(std::uint8_t version, std::span<const std::byte> question, const wire::Address& to,
                        wire::Outbox& out);
    void answer_hello(const wire::Hello& hello, std::size_t question_bytes, const wire::Address& to, wire::Ecn ecn,
                      wire::Outbox& out);
    [[nodiscard]] NodeTask handle_stats(const wire::Stats& stats, std::size_t question_bytes, const wire::Address& from,
                                        wire::Outbox& out);
    void answer_stats(const ReportRequest& request, const KeptReport& kept, wire::Outbox& out);
    template <class Message, class... Padding>
    void answer(const Message& message, const wire::Address& to, std::size_t question_bytes, wire::Ecn ecn,
                wire::Outbox& out, Padding... padding);

    NodeMachineConfig config_;
    const control::HelloClient* parent_ = nullptr;
    std::array<KeptReport, kept_reports> reports_{};  // report n is at n mod 8
    std::uint32_t next_report_ = 1;
    std::optional<ReportRequest> request_;  // between handle_message() and handle_report() only
    NodeCounters counters_;
};

}  // namespace atp::endpoint
