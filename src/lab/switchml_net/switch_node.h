// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "client/switch_report.h"
#include "endpoint/node_machine.h"
#include "net/event_loop.h"
#include "net/transport.h"
#include "switchd/config.h"
#include "switchd/shard_outbox.h"
#include "switchml/switch_endpoint.h"

namespace atp::switchml_net {

// A switch of SwitchML: a thread with a socket and a pool of slots. It answers HELLO and STATS of ATP, so that
// `atp stats` shows it and ranks find out what their path carries.
//
// Ownership: owns its thread.
// Calling order: start(), then stop() or the destructor.
// Threads: any thread calls the functions.
// Failure: start() returns the reason. If the socket fails for good, failure() returns the error.
class SwitchNode final : private net::Actor {
  public:
    // Uses the socket, the memory (of all slots), the lanes, the first core, `spin`, the transport and the additions to
    // the report. `failed` is called on the thread if it ends with failure().
    [[nodiscard]] static Result<std::unique_ptr<SwitchNode>> start(const switchd::SwitchNodeConfig& config,
                                                                   std::function<void()> failed = {});
    ~SwitchNode() override;

    void stop();
    [[nodiscard]] const wire::Address& address() const { return transport_->local(); }
    // As last published, at most 100 ms ago while packets arrive.
    [[nodiscard]] client::SwitchReport snapshot() const;
    [[nodiscard]] std::optional<Error> failure() const;

  private:
    SwitchNode(const switchd::SwitchNodeConfig& config, std::unique_ptr<net::EventLoop> loop,
               std::unique_ptr<net::Transport> transport);

    void handle_ready(int descriptor, net::Ready ready, Time now) override;
    void handle_timeout(Time now) override;
    void finish_round(Time now) override;
    [[nodiscard]] Time poll_timeout() const override;
    void receive(Time now);
    void handle_question(const wire::Datagram& datagram, Time now);
    void take_report(const endpoint::NodeTask& task, Time now);
    void flush();
    void publish();
    void end(const Error& error);

    switchd::SwitchNodeConfig config_;
    std::unique_ptr<net::EventLoop> loop_;
    std::unique_ptr<net::Transport> transport_;
    switchd::ShardOutbox outbox_;
    switchml::SwitchEndpoint endpoint_;
    endpoint::NodeMachine questions_;
    Time started_;
    std::function<void()> failed_;
    std::vector<wire::Datagram> datagrams_;
    bool waits_ = false;  // the loop watches for room to send instead of datagrams
    bool changed_ = true;
    Time publish_at_{};
    mutable std::mutex mutex_;  // guards what other threads read
    client::ShardReport published_;
    std::optional<Error> failure_;
    std::thread thread_;
};

}  // namespace atp::switchml_net
