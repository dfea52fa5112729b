// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/options.h"
#include "net/event_loop.h"
#include "net/udp_socket.h"
#include "numeric/element_type.h"
#include "store/rendezvous.h"
#include "switchml/worker.h"

namespace atp::switchml_net {

struct GroupConfig {
    comm::Options options;  // those that ask for what SwitchML lacks are refused
    switchml::Mode mode = switchml::Mode::compares_offsets;
    Duration resend_after = std::chrono::milliseconds(1);  // above 0
};

// What of these options SwitchML does not have; nullopt: nothing.
[[nodiscard]] std::optional<std::string> objection_to(const GroupConfig& config, std::uint32_t world);

// One rank of a job of SwitchML, with a socket. The ranks exchange their addresses in a store, and rank 0 admits the
// job at the switch (docs/spec/switchml.md#over-sockets).
//
// Ownership: owns its socket. Borrows the rendezvous, and the memory of an operation until it returns.
// Calling order: form() on all ranks, then equal operations in the same order on all ranks, then close() on all ranks.
// Threads: one thread calls it, and drives the socket in these calls; any thread may call abort().
// Failure: an operation that fails ends the group: later operations fail too.
class RankGroup final : private net::Actor {
  public:
    [[nodiscard]] static Result<std::unique_ptr<RankGroup>> form(store::Rendezvous& rendezvous,
                                                                 const GroupConfig& config);
    ~RankGroup() override { loop_->remove(*this); }

    // Sums the elements of all ranks. `in` and `out` may be the same memory.
    [[nodiscard]] Result<void> all_reduce(const void* in, void* out, std::size_t elements, numeric::ElementType type);
    // Returns when all ranks have called.
    [[nodiscard]] Result<void> barrier();
    // Gives the slots back when no rank needs a result any more.
    [[nodiscard]] Result<void> close();
    void abort();

    [[nodiscard]] const switchml::WorkerConfig& config() const { return worker_->config(); }
    [[nodiscard]] const switchml::WorkerCounters& counters() const { return worker_->counters(); }

  private:
    RankGroup(store::Rendezvous& rendezvous, const GroupConfig& config, const wire::Address& switch_address,
              std::unique_ptr<net::UdpSocket> socket, std::unique_ptr<net::EventLoop> loop);

    [[nodiscard]] Result<void> open(std::uint32_t lanes, Time deadline);
    // The answer of the switch to a message, which is repeated until it comes.
    [[nodiscard]] Result<std::string> ask(const std::string& message, Time deadline);
    // Returns when stop() was called on the thread, or at the deadline.
    [[nodiscard]] Result<void> run(Time deadline);

    void handle_ready(int descriptor, net::Ready ready, Time now) override;
    void handle_timeout(Time now) override;
    void finish_round(Time now) override { transmit(now); }
    [[nodiscard]] Time poll_timeout() const override;
    // False: the worker still has a tensor that has gone.
    [[nodiscard]] bool works() const { return worker_.has_value() && !error_; }
    void take_event();
    void transmit(Time now);
    void flush();
    [[nodiscard]] Error error_of(const switchml::WorkerEvent& event) const;

    store::Rendezvous& rendezvous_;
    GroupConfig config_;
    wire::Address switch_;
    std::unique_ptr<net::UdpSocket> socket_;
    std::unique_ptr<net::EventLoop> loop_;
    std::vector<wire::Datagram> datagrams_;
    std::string name_;  // of the stream
    std::optional<switchml::Worker> worker_;
    std::optional<switchml::WorkerEvent> event_;  // that ended the operation
    std::string question_;                        // empty: none
    std::string answer_;
    Time ask_at_{};
    Time deadline_ = never;  // of run()
    bool blocked_ = false;   // the socket's buffer is full
    bool due_ = false;       // packets may be due that transmit() has not sent
    std::optional<Error> error_;
};

}  // namespace atp::switchml_net
