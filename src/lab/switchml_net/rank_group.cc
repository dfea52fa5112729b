// SPDX-License-Identifier: Apache-2.0
#include "switchml_net/rank_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "comm/switch_reach.h"
#include "net/clock.h"
#include "net/local_route.h"
#include "net/random.h"
#include "protocol/channel.h"
#include "tensor/number_form.h"
#include "tensor/tensors.h"

namespace atp::switchml_net {
namespace {

using Json = nlohmann::ordered_json;

constexpr Duration ask_interval = std::chrono::milliseconds(20);
constexpr std::size_t batch_packets = 64;
constexpr int batches_per_round = 8;
// Packets sent between two reads of the socket.
constexpr unsigned packets_per_transmit = 256;

}  // namespace

std::optional<std::string> objection_to(const GroupConfig& config, std::uint32_t world) {
    const comm::Options& options = config.options;
    if (world > ATP_BITMAP_BITS) {
        return fmt::format("a world of {} ranks; SwitchML uses one switch, with at most {}", world, ATP_BITMAP_BITS);
    }
    if (options.channels != 1) return "several channels; a rank of SwitchML has one";
    if (options.audit) return "audit is set; SwitchML has no audit lane: unset it";
    if (options.scaling != tensor::Scaling::fixed || tensor::is_narrow(options.lane_type)) {
        return "an adaptive scale or int16 lanes; SwitchML has one scale, and int32 lanes";
    }
    if (options.server != comm::ServerPlace::on_switch && options.server != comm::ServerPlace::automatic) {
        return "a place for parameter servers; SwitchML has none";
    }
    if (!options.rack.empty()) return "a rack; SwitchML uses one switch, which workers address";
    if (options.multicast.requested) return "results by multicast; SwitchML sends one copy to each worker";
    if (config.resend_after <= Duration::zero()) return "a timeout of 0 for resends; it must be above 0";
    return std::nullopt;
}

// ---------------------------------------------------------------------------------------------------------- Formation

Result<std::unique_ptr<RankGroup>> RankGroup::form(store::Rendezvous& rendezvous, const GroupConfig& config) {
    const comm::Options& options = config.options;
    if (const auto problem = objection_to(config, rendezvous.party().world)) {
        return fail(Operation::rendezvous, Reason::malformed, {}, *problem);
    }
    const Time deadline = net::after(net::now(), options.join_timeout);
    const auto reach = comm::reach_switch(options, deadline);
    if (!reach) return tl::unexpected(reach.error());
    const auto local = net::local_address_towards(reach->address);
    if (!local) return tl::unexpected(local.error());
    auto socket = net::UdpSocket::open({.local = *local,
                                        .mmsg = options.mmsg,
                                        .gso = options.gso,
                                        .gro = options.gro,
                                        .receive_buffer_bytes = options.socket_buffer_bytes,
                                        .send_buffer_bytes = options.socket_buffer_bytes,
                                        .busy_poll_us = options.busy_poll_us});
    if (!socket) return tl::unexpected(socket.error());
    net::LoopConfig on{.spin = options.spin, .core = std::nullopt};
    if (!options.cores.empty()) on.core = options.cores.front();
    auto loop = net::EventLoop::open(on);
    if (!loop) return tl::unexpected(loop.error());
    std::unique_ptr<RankGroup> group(
        new RankGroup(rendezvous, config, reach->address, *std::move(socket), *std::move(loop)));
    if (auto watched = group->loop_->watch(*group, group->socket_->descriptor(), {}); !watched) {
        return tl::unexpected(watched.error());
    }
    const std::uint32_t fits = std::min<std::uint32_t>(reach->lanes, reach->welcome.path.front().lanes);
    if (auto opened = group->open(options.lanes != 0 ? options.lanes : fits, deadline); !opened) {
        return tl::unexpected(opened.error());
    }
    return group;
}

RankGroup::RankGroup(store::Rendezvous& rendezvous, const GroupConfig& config, const wire::Address& switch_address,
                     std::unique_ptr<net::UdpSocket> socket, std::unique_ptr<net::EventLoop> loop)
    : rendezvous_(rendezvous),
      config_(config),
      switch_(switch_address),
      socket_(std::move(socket)),
      loop_(std::move(loop)),
      datagrams_(batch_packets) {
    loop_->add(*this);
}

// The packets have the lanes of the shortest path. Rank 0 admits the stream, and tells the others its number.
Result<void> RankGroup::open(std::uint32_t lanes, Time deadline) {
    const auto own = fmt::format("{} {}", lanes, to_string(socket_->local()));
    const auto all = rendezvous_.all_gather("switchml", own, deadline);
    if (!all) return tl::unexpected(all.error());
    std::vector<std::string> workers;
    for (const std::string& text : *all) {
        std::size_t digits = 0;
        lanes = std::min(lanes, static_cast<std::uint32_t>(std::stoul(text, &digits)));
        workers.push_back(text.substr(digits + 1));
    }
    const std::uint32_t window = config_.options.window != 0 ? config_.options.window : protocol::usual_window(lanes);
    switchml::WorkerConfig worker{.job = {.workers = static_cast<std::uint8_t>(workers.size()),
                                          .slots_log2 = static_cast<std::uint8_t>(std::countr_zero(window)),
                                          .lanes = static_cast<std::uint16_t>(lanes),
                                          .mode = config_.mode},
                                  .rank = static_cast<std::uint8_t>(rendezvous_.party().rank),
                                  .scale = config_.options.scale,
                                  .timeout = config_.resend_after};
    if (rendezvous_.party().rank == 0) {
        name_ = fmt::format("{:016x}", net::random_bits());
        auto admitted = ask(Json{{"stream", name_},
                                 {"workers", workers},
                                 {"slots_log2", worker.job.slots_log2},
                                 {"lanes", lanes},
                                 {"mode", static_cast<unsigned>(config_.mode)}}
                                .dump(),
                            deadline);
        if (!admitted) return tl::unexpected(admitted.error());
        if (auto left = rendezvous_.announce("switchml-stream", *admitted); !left) return left;
    }
    const auto answers = rendezvous_.collect("switchml-stream", {0}, deadline);
    if (!answers) return tl::unexpected(answers.error());
    const Json stream = Json::parse(answers->front());
    if (stream.contains("refused")) {
        return fail(Operation::join, Reason::rejected, to_string(switch_), stream["refused"].get<std::string>());
    }
    worker.job.job = stream.at("number").get<std::uint8_t>();
    worker_.emplace(worker);
    return {};
}

Result<std::string> RankGroup::ask(const std::string& message, Time deadline) {
    question_ = message;
    answer_.clear();
    ask_at_ = Time{};
    auto ran = run(deadline);
    question_.clear();
    if (!ran) return tl::unexpected(ran.error());
    if (!answer_.empty()) return std::exchange(answer_, {});
    return fail(Operation::join, Reason::timed_out, to_string(switch_),
                "the switch does not answer: start one with atp-lab switch --protocol switchml");
}

Result<void> RankGroup::close() {
    const Time deadline = net::after(net::now(), config_.options.timeout);
    if (auto met = rendezvous_.barrier("switchml-end", deadline); !met) return met;
    if (rendezvous_.party().rank != 0) return {};
    const auto dismissed = ask(Json{{"stream", name_}}.dump(), deadline);
    return dismissed ? Result<void>{} : tl::unexpected(dismissed.error());
}

// --------------------------------------------------------------------------------------------------------- Operations

Result<void> RankGroup::all_reduce(const void* in, void* out, std::size_t elements, numeric::ElementType type) {
    const Time deadline = net::after(net::now(), config_.options.timeout);
    const auto tensor = tensor::make_sum_tensor(type, in, out, elements, static_cast<float>(config_.options.scale), 1);
    if (error_ || !worker_->submit(*tensor, net::now(), deadline)) {
        return fail(Operation::all_reduce, Reason::closed, {}, "an earlier operation of this job failed");
    }
    event_.reset();
    auto ran = run(never);
    if (ran && event_ && event_->kind == switchml::WorkerEvent::Kind::completed) return {};
    if (!ran) error_ = ran.error();
    if (event_) error_ = error_of(*event_);
    if (!error_) error_ = {.operation = Operation::all_reduce, .reason = Reason::closed, .text = "it was aborted"};
    return tl::unexpected(*error_);
}

Result<void> RankGroup::barrier() {
    std::int32_t none = 0;
    return all_reduce(&none, &none, 1, numeric::ElementType::int32);
}

void RankGroup::abort() { loop_->stop(); }

Result<void> RankGroup::run(Time deadline) {
    deadline_ = deadline;
    return loop_->run();
}

void RankGroup::handle_ready(int, net::Ready ready, Time now) {
    if (ready.write && blocked_) flush();
    for (int batch = 0; batch < batches_per_round || socket_->has_more(); ++batch) {
        const auto count = socket_->receive(datagrams_);
        if (!count) {
            error_ = count.error();
            return loop_->stop();
        }
        if (*count == 0) return;
        for (const wire::Datagram& datagram : std::span(datagrams_).first(*count)) {
            if (*datagram.from != switch_) continue;
            if (datagram.bytes[0] == std::byte{'{'}) {
                answer_.assign(reinterpret_cast<const char*>(datagram.bytes.data()), datagram.bytes.size());
                if (!question_.empty()) loop_->stop();
            } else if (works()) {
                worker_->handle_packet(datagram.bytes, datagram.ecn == wire::Ecn::congested, now);
            }
        }
        take_event();
        transmit(now);
        if (socket_->drained()) return;
    }
}

void RankGroup::handle_timeout(Time now) {
    if (now >= deadline_) loop_->stop();
    if (works()) worker_->handle_timeout(now);
    take_event();
}

Time RankGroup::poll_timeout() const {
    if (due_) return Time{};
    return std::min({deadline_, question_.empty() ? never : ask_at_, works() ? worker_->poll_timeout() : never});
}

void RankGroup::take_event() {
    if (!works() || event_) return;
    event_ = worker_->poll_event();
    if (event_) loop_->stop();
}

void RankGroup::transmit(Time now) {
    if (!question_.empty() && now >= ask_at_) {
        const std::span<std::byte> room = socket_->reserve(question_.size());
        if (!room.empty()) std::memcpy(room.data(), question_.data(), question_.size());
        if (!room.empty()) socket_->commit(question_.size(), switch_, wire::Ecn::not_capable);
        ask_at_ = now + ask_interval;
    }
    unsigned left = works() ? packets_per_transmit : 0;
    while (left != 0 && !blocked_) {
        const std::span<std::byte> room = socket_->reserve(worker_->packet_bytes());
        if (room.empty() && socket_->waiting() == 0) break;
        if (room.empty()) {
            flush();
            continue;
        }
        const auto size = worker_->poll_transmit(room, now);
        if (!size) break;
        --left;
        socket_->commit(*size, switch_, wire::Ecn::capable_0);
    }
    due_ = works() && left == 0 && !blocked_;
    flush();
}

void RankGroup::flush() {
    const bool waits = socket_->flush().waiting != 0;
    if (waits == blocked_) return;
    blocked_ = waits;
    static_cast<void>(loop_->change(socket_->descriptor(), {.read = true, .write = waits}));
}

Error RankGroup::error_of(const switchml::WorkerEvent& event) const {
    if (event.kind == switchml::WorkerEvent::Kind::overflowed) {
        return {.operation = Operation::all_reduce,
                .reason = Reason::too_large,
                .elapsed = event.elapsed,
                .text = fmt::format("a value or a sum does not fit 32 bits (floats at scale {}), and SwitchML has no "
                                    "server that adds it: use a smaller scale, or ATP",
                                    config_.options.scale)};
    }
    return {.operation = Operation::all_reduce,
            .reason = Reason::timed_out,
            .peer = to_string(switch_),
            .elapsed = event.elapsed,
            .text = fmt::format("nothing was received from the switch {}: a rank did not call the operation or ended, "
                                "or the switch restarted",
                                event.answered ? fmt::format("for {:.1f} s", to_seconds(net::now() - event.answered_at))
                                               : std::string("at all"))};
}

}  // namespace atp::switchml_net
