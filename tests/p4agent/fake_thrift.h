// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "net/descriptor.h"
#include "wire/address.h"

namespace atp::p4agent {

// The fields of replies, as Thrift writes them.
[[nodiscard]] std::string reply_number32(std::int32_t value);
[[nodiscard]] std::string reply_number64(std::int64_t value);
[[nodiscard]] std::string reply_text(std::string_view value);
[[nodiscard]] std::string reply_list64(const std::vector<std::int64_t>& values);
[[nodiscard]] std::string reply_counter(std::int64_t packets);
[[nodiscard]] std::string reply_ports(const std::vector<std::string>& names);  // numbers from 0
[[nodiscard]] std::string reply_exception();

// A Thrift server for one client after another. Each call is one datagram of the client's socket.
//
// Ownership: owns its socket and thread. Threads: answers may be set and calls read at any time.
class FakeThrift {
  public:
    FakeThrift();
    ~FakeThrift();
    FakeThrift(const FakeThrift&) = delete;
    FakeThrift& operator=(const FakeThrift&) = delete;

    [[nodiscard]] wire::Address address() const;
    // Answers calls of "service:function" with the fields. Functions without an answer return nothing.
    void answer(const std::string& function, std::string fields);
    // From now on, closes the connection instead of an answer.
    void close_connections() { closing_ = true; }
    // The arguments of all calls of the function.
    [[nodiscard]] std::vector<std::string> calls(const std::string& function) const;

  private:
    void run();
    void serve(int client);

    net::Descriptor listener_;
    mutable std::mutex mutex_;
    std::map<std::string, std::string> answers_;
    std::vector<std::pair<std::string, std::string>> calls_;
    std::atomic<bool> closing_{false};
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace atp::p4agent
