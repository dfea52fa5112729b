// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "net/event_loop.h"
#include "net/udp_socket.h"
#include "wire/control.h"

namespace atp::switchd {

// Tracks the switches above this switch: asks the parent for its path every second. While the parent does not answer,
// it asks every 50 ms.
//
// Ownership: owns a small socket; borrows the loop.
// Calling order: open(), then the loop runs it.
// Threads: the loop's; answers() from any.
// Failure: if the parent does not answer for 5 s, path() is empty.
class ParentLink final : public net::Actor {
  public:
    [[nodiscard]] static Result<std::unique_ptr<ParentLink>> open(const wire::Address& parent, net::EventLoop& loop);
    ~ParentLink() override;

    void handle_ready(int descriptor, net::Ready ready, Time now) override;
    void handle_timeout(Time now) override;
    [[nodiscard]] Time poll_timeout() const override { return next_; }

    // The path, with the parent first; empty while the parent does not answer.
    [[nodiscard]] const std::vector<wire::PathSwitch>& path() const { return path_; }
    [[nodiscard]] bool answers() const { return answers_; }  // from any thread

  private:
    ParentLink(const wire::Address& parent, net::EventLoop& loop, std::unique_ptr<net::UdpSocket> socket);

    wire::Address parent_;
    net::EventLoop& loop_;
    std::unique_ptr<net::UdpSocket> socket_;
    std::vector<wire::PathSwitch> path_;
    std::atomic<bool> answers_{false};
    Time answered_at_{};
    Time next_{};
    std::uint64_t nonce_;
};

}  // namespace atp::switchd
