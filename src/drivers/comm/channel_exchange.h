// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/work.h"
#include "control/join_client.h"
#include "net/udp_report.h"
#include "protocol/server.h"
#include "protocol/worker.h"

namespace atp::comm {

struct ChannelCounters {
    protocol::WorkerCounters worker;
    protocol::ServerCounters server;  // all 0 unless the channel hosts its server
    control::MemberCounters member;
    net::UdpCounters udp;
    net::UdpCounters group_udp;       // of the socket that receives the group
    std::uint64_t group_results = 0;  // results received from the group
    bool results_by_group = false;    // the last result to all workers came from the group, not as a copy
    std::uint32_t window_packets = 0;
    std::uint64_t strays = 0;  // received datagrams that do not belong to this channel
};

// The part of an operation that one channel carries.
struct WorkPart {
    Handle work;
    std::size_t number = 0;
};

// What the callers of a channel and its I/O thread exchange: parts of operations in, state and counters out.
//
// Ownership: shares each Work with the caller.
// Calling order: any; after abort() or close() submit() returns the first error.
// Threads: any. Callers use the first group of functions, the I/O thread the second.
// Failure: none.
class ChannelExchange {
  public:
    // Returns the error of a channel that takes no more parts: it has ended, or has to end.
    [[nodiscard]] std::optional<Error> submit(const WorkPart& part);
    // The first reason remains.
    void abort(const Error& reason);
    // True: the tree is ready. Otherwise the channel has ended, or the deadline has passed.
    [[nodiscard]] bool wait_ready(Time deadline);
    [[nodiscard]] std::optional<Error> error() const;  // that ended the channel; nullopt while it runs
    [[nodiscard]] std::string waiting() const;         // what is missing until the tree is ready; empty: not known
    [[nodiscard]] ChannelCounters counters() const;
    [[nodiscard]] std::vector<std::string> missing_features() const;

    // Moves all submitted parts to the end of `parts`. Returns the reason of an abort() until close().
    [[nodiscard]] std::optional<Error> take(std::deque<WorkPart>& parts);
    void set_ready();
    void set_waiting(std::string text);
    void set_group_failure(std::string text);
    // Ends the channel: moves the rest of the parts to the end of `parts`. The first error remains.
    void close(const Error& error, std::deque<WorkPart>& parts);
    void publish(const ChannelCounters& counters, const net::UdpReport& report);

  private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<WorkPart> submitted_;
    bool ready_ = false;
    std::string waiting_;
    std::optional<Error> error_;
    std::optional<Error> abort_;
    ChannelCounters counters_;
    net::UdpReport report_;
    std::string group_failure_;  // why the group's socket was closed; empty: it was not
};

}  // namespace atp::comm
