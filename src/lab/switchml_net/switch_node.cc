// SPDX-License-Identifier: Apache-2.0
#include "switchml_net/switch_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "base/version.h"
#include "net/clock.h"
#include "net/random.h"
#include "wire/control.h"

namespace atp::switchml_net {
namespace {

constexpr Duration publish_interval = std::chrono::milliseconds(100);
constexpr std::size_t batch_packets = 64;
constexpr std::size_t batch_errors = 8;
constexpr int batches_per_round = 8;

}  // namespace

Result<std::unique_ptr<SwitchNode>> SwitchNode::start(const switchd::SwitchNodeConfig& config,
                                                      std::function<void()> failed) {
    net::LoopConfig on{.spin = config.spin, .core = std::nullopt};
    if (!config.cores.empty()) on.core = config.cores.front();
    auto loop = net::EventLoop::open(on);
    if (!loop) return tl::unexpected(loop.error());
    auto transport = switchd::open_transport(config, 0);
    if (!transport) return tl::unexpected(transport.error());
    try {
        std::unique_ptr<SwitchNode> node(new SwitchNode(config, *std::move(loop), *std::move(transport)));
        SwitchNode& self = *node;
        self.failed_ = std::move(failed);
        if (auto watched = self.loop_->watch(self, self.transport_->descriptor(), {}); !watched) {
            return tl::unexpected(watched.error());
        }
        self.thread_ = std::thread([&self] {
            if (const auto ran = self.loop_->run(); !ran) self.end(ran.error());
        });
        return node;
    } catch (const std::bad_alloc&) {
        return fail(Operation::open, Reason::exhausted, "--memory",
                    fmt::format("no memory for {:.1f} GB of slots", static_cast<double>(config.memory_bytes) / 1e9));
    }
}

SwitchNode::SwitchNode(const switchd::SwitchNodeConfig& config, std::unique_ptr<net::EventLoop> loop,
                       std::unique_ptr<net::Transport> transport)
    : config_(config),
      loop_(std::move(loop)),
      transport_(std::move(transport)),
      outbox_(*transport_, config.udp.send_packets),
      endpoint_({.slots = switchml::slots_in(config.memory_bytes, config.lanes), .lanes = config.lanes}),
      questions_({.id = net::random_bits(),
                  .self = {.lanes = config.lanes},
                  .software = software_name(),
                  .secret = net::random_secret()}),
      started_(net::now()),
      datagrams_(batch_packets) {
    loop_->add(*this);
    publish();
}

SwitchNode::~SwitchNode() {
    stop();
    loop_->remove(*this);
}

void SwitchNode::stop() {
    loop_->stop();
    if (thread_.joinable()) thread_.join();
}

std::optional<Error> SwitchNode::failure() const {
    const std::scoped_lock lock(mutex_);
    return failure_;
}

client::SwitchReport SwitchNode::snapshot() const {
    client::SwitchReport report{.software = software_name(),
                                .address = to_string(address()),
                                .uptime_s = std::chrono::duration<double>(net::now() - started_).count(),
                                .lanes = config_.lanes,
                                .memory_bytes = config_.memory_bytes};
    client::add_parts(config_.report_parts, report.parts);
    const std::scoped_lock lock(mutex_);
    report.shards.push_back(published_);
    return report;
}

// ------------------------------------------------------------------------------------------------------ On its thread

void SwitchNode::handle_ready(int, net::Ready ready, Time now) {
    // SwitchML resends whatever is lost, so reports about single packets are only removed.
    std::array<wire::SendError, batch_errors> errors;
    while (ready.failed && transport_->take_errors(errors) == errors.size()) {
    }
    if (ready.write && waits_) flush();
    if (!waits_) receive(now);
}

void SwitchNode::receive(Time now) {
    for (int batch = 0; (batch < batches_per_round || transport_->has_more()) && !outbox_.blocked(); ++batch) {
        const auto count = transport_->receive(datagrams_);
        if (!count) return end(count.error());
        if (*count == 0) return;
        changed_ = true;
        const std::span<const wire::Datagram> received = std::span(datagrams_).first(*count);
        for (const wire::Datagram& datagram : received) {
            if (wire::control_type(datagram.bytes)) handle_question(datagram, now);
        }
        endpoint_.handle_batch(received, outbox_, now);
        flush();
        if (transport_->drained()) return;
    }
}

void SwitchNode::handle_question(const wire::Datagram& datagram, Time now) {
    const endpoint::ControlMessage question{.from = *datagram.from,
                                            .ecn = datagram.ecn,
                                            .bytes = {datagram.bytes.begin(), datagram.bytes.end()},
                                            .length = datagram.bytes.size()};
    take_report(questions_.handle_message(question, outbox_, now), now);
}

void SwitchNode::take_report(const endpoint::NodeTask& task, Time now) {
    if (task.kind != endpoint::NodeTask::Kind::take_report) return;
    publish();
    questions_.handle_report(to_json(snapshot()), outbox_, now);
}

// While the kernel accepts no packets, arrivals wait in the receive buffer.
void SwitchNode::flush() {
    outbox_.flush();
    if (outbox_.blocked() == waits_) return;
    waits_ = outbox_.blocked();
    static_cast<void>(loop_->change(transport_->descriptor(), {.read = !waits_, .write = waits_}));
}

void SwitchNode::handle_timeout(Time now) {
    if (now >= transport_->poll_timeout() && !outbox_.blocked()) receive(now);
    take_report(questions_.handle_timeout(now), now);
    if (!changed_ || now < publish_at_) return;
    changed_ = false;
    publish_at_ = now + publish_interval;
    publish();
}

void SwitchNode::finish_round(Time /*now*/) {
    if (!outbox_.blocked() || !waits_) flush();
}

Time SwitchNode::poll_timeout() const {
    return std::min({changed_ ? publish_at_ : never, outbox_.blocked() ? never : transport_->poll_timeout(),
                     questions_.poll_timeout()});
}

void SwitchNode::publish() {
    client::ShardReport report;
    report.address = to_string(transport_->local());
    report.udp = transport_->counters();
    report.features = transport_->report();
    client::add_parts(endpoint_.report(), report.parts);
    client::add_parts(transport_->report_parts(), report.parts);
    const std::scoped_lock lock(mutex_);
    published_ = std::move(report);
}

void SwitchNode::end(const Error& error) {
    {
        const std::scoped_lock lock(mutex_);
        failure_ = error;
    }
    loop_->unwatch(transport_->descriptor());
    loop_->stop();
    if (failed_) failed_();
}

}  // namespace atp::switchml_net
