// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "control/hello_client.h"
#include "control/question_pace.h"
#include "net/event_loop.h"
#include "net/udp_socket.h"
#include "observe/log.h"

namespace atp::switchd {

// Tracks the switches above this switch: a HelloClient and its socket. It asks the parent for its path every second.
// While the parent does not answer, it asks every 50 ms.
//
// Ownership: owns a small socket; borrows the loop and the log, which may be nullptr.
// Calling order: open(), then the loop runs it.
// Threads: the loop's; answers() from any.
// Failure: if the parent does not answer for 5 s, answers() is false.
class ParentLink final : public net::Actor {
  public:
    [[nodiscard]] static Result<std::unique_ptr<ParentLink>> open(const wire::Address& parent, net::EventLoop& loop,
                                                                  observe::Log* log,
                                                                  std::shared_ptr<control::QuestionPace> pace);
    ~ParentLink() override;

    void handle_ready(int descriptor, net::Ready ready, Time now) override;
    void handle_timeout(Time now) override;
    [[nodiscard]] Time poll_timeout() const override { return client_.poll_timeout(); }

    [[nodiscard]] const control::HelloClient& client() const { return client_; }  // on the loop's thread
    [[nodiscard]] bool answers() const { return answers_; }                       // from any thread

  private:
    ParentLink(const wire::Address& parent, net::EventLoop& loop, observe::Log* log,
               std::unique_ptr<net::UdpSocket> socket, std::shared_ptr<control::QuestionPace> pace);
    void update();

    net::EventLoop& loop_;
    observe::Log* log_;
    std::unique_ptr<net::UdpSocket> socket_;
    control::HelloClient client_;
    std::shared_ptr<control::QuestionPace> pace_;  // the channels may ask a parent that answers here
    std::atomic<bool> answers_{false};
};

}  // namespace atp::switchd
