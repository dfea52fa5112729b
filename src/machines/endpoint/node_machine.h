// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/siphash.h"
#include "base/time.h"
#include "control/address_buckets.h"
#include "control/gatekeeper.h"
#include "control/hello_client.h"
#include "endpoint/control_queue.h"
#include "endpoint/kept_reports.h"
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
    Secret secret{};  // of its cookies
};

// What the driver does with a message.
struct NodeTask {
    enum class Kind : std::uint8_t {
        none,         // nothing: the machine has answered or dropped it
        deliver,      // pass it to shard `shard`
        take_report,  // call handle_report() soon, with the state of the switch from now on as text
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
    std::uint64_t limited = 0;   // questions without an answer, because too many came
};

// What one switch answers as a whole: HELLO, STATS and messages of another version. It finds the shard of every
// message that belongs to a channel.
//
// Reports go to proven addresses only. A report describes a moment after the question for it, but all who ask within
// 100 ms share one, so that questions cost the switch the same however many there are.
//
// Ownership: borrows the client of the parent, if there is one; it must outlive the machine. Owns the kept reports.
// Calling order: set_parent() first, if the switch has a parent. Then handle_message(), and handle_timeout() at
//   poll_timeout(); after take_report, handle_report() once, while further messages may arrive.
// Threads: none.
// Failure: a message that does not decode is dropped. An answer that is longer than its question is not sent, so that a
//   forged sender gains nothing.
class NodeMachine {
  public:
    explicit NodeMachine(const NodeMachineConfig& config);

    void set_parent(const control::HelloClient& parent) { parent_ = &parent; }
    // An answer to a HELLO carries the ECN bits of its datagram, so both directions are measured.
    [[nodiscard]] NodeTask handle_message(const ControlMessage& message, wire::Outbox& out, Time now);
    // Returns take_report or none.
    [[nodiscard]] NodeTask handle_timeout(Time now);
    [[nodiscard]] Time poll_timeout() const { return taking_ != 0 || waiting_.empty() ? never : next_report_; }
    void handle_report(std::string text, wire::Outbox& out, Time now);

    [[nodiscard]] bool parent_answers() const { return parent_ != nullptr && parent_->answers(); }
    [[nodiscard]] const NodeCounters& counters() const { return counters_; }
    [[nodiscard]] const control::Gatekeeper& gatekeeper() const { return gatekeeper_; }

  private:
    static constexpr Duration report_interval = std::chrono::milliseconds(100);
    static constexpr std::size_t most_waiting = 64;

    // A question for a report that is not made yet.
    struct ReportRequest {
        wire::Stats stats;
        wire::Address from;
        std::size_t bytes = 0;
    };

    [[nodiscard]] std::optional<std::uint32_t> shard_of(std::span<const std::byte> bytes) const;
    void refuse_version(std::uint8_t version, const ControlMessage& question, wire::Outbox& out);
    void answer_hello(const wire::Hello& hello, const ControlMessage& question, wire::Outbox& out);
    [[nodiscard]] NodeTask handle_stats(const wire::Stats& stats, const ControlMessage& question, wire::Outbox& out,
                                        Time now);
    [[nodiscard]] NodeTask request_report(const ReportRequest& request, Time now);
    void answer_stats(const ReportRequest& request, const KeptReports::KeptReport& kept, wire::Outbox& out);
    template <class Message, class... Padding>
    void answer(const Message& message, const wire::Address& to, std::size_t question_bytes, wire::Ecn ecn,
                wire::Outbox& out, Padding... padding);

    NodeMachineConfig config_;
    const control::HelloClient* parent_ = nullptr;
    control::Gatekeeper gatekeeper_;
    control::AnswerLimit limit_;
    KeptReports reports_;
    std::vector<ReportRequest> waiting_;
    std::size_t taking_ = 0;  // of these, the first ones get the report that is being made; 0: none is
    Time next_report_{};      // the earliest one
    NodeCounters counters_;
};

}  // namespace atp::endpoint
