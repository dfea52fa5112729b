// SPDX-License-Identifier: Apache-2.0
#include "traffic.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "net/clock.h"
#include "net/event_loop.h"
#include "net/udp_socket.h"

namespace atp::bench {
namespace {

using net::Feature;
using net::UdpSocket;
using std::chrono::milliseconds;
using wire::Datagram;

constexpr std::uint32_t burst_bytes = 128 * 1024;  // of the packets before a flush: two messages of GSO
constexpr std::uint32_t most_burst_packets = 256;
// Both limits apply, because a small packet occupies several times its length in the receive buffer.
constexpr std::uint64_t window_bytes = 2 << 20;
constexpr std::uint64_t window_packets = 4096;
constexpr auto stall = milliseconds(50);

// Shared by both threads. Each counter has one writer.
struct Shared {
    alignas(64) std::atomic<std::uint64_t> sent{0};
    alignas(64) std::atomic<std::uint64_t> received{0};
    std::atomic<std::uint64_t> next_number{0};  // number of the last packet that arrived, plus 1
    std::atomic<bool> intact{true};
    alignas(64) std::atomic<bool> stop{false};
};

class Receiver : public net::Actor {
  public:
    Receiver(UdpSocket& socket, std::uint32_t packet_bytes, Shared& shared)
        : socket_(socket), packet_bytes_(packet_bytes), shared_(shared) {}

    void handle_ready(int, net::Ready, Time) override {
        do {
            const auto received = socket_.receive(batch_);
            if (!received || *received == 0) return;
            for (const Datagram& datagram : std::span(batch_).first(*received)) check(datagram);
            shared_.received.store(count_ += *received, std::memory_order_relaxed);
            shared_.next_number.store(next_number_, std::memory_order_release);
        } while (socket_.has_more() || !shared_.stop.load(std::memory_order_relaxed));
    }
    void handle_timeout(Time) override {}

  private:
    // Numbers increase: a gap is a loss, a decrease is a reordered packet.
    void check(const Datagram& datagram) {
        std::uint64_t number = 0;
        if (datagram.bytes.size() != packet_bytes_ || datagram.truncated) {
            shared_.intact = false;
            return;
        }
        std::memcpy(&number, datagram.bytes.data(), sizeof number);
        if (number < next_number_) shared_.intact = false;
        next_number_ = number + 1;
    }

    UdpSocket& socket_;
    std::uint32_t packet_bytes_;
    Shared& shared_;
    std::array<Datagram, 256> batch_;
    std::uint64_t count_ = 0;
    std::uint64_t next_number_ = 0;
};

class Sender {
  public:
    Sender(UdpSocket& socket, const wire::Address& to, std::uint32_t packet_bytes, Shared& shared)
        : socket_(socket),
          to_(to),
          packet_bytes_(packet_bytes),
          burst_(std::clamp(burst_bytes / packet_bytes, 1U, most_burst_packets)),
          window_(std::min(window_packets, window_bytes / packet_bytes)),
          shared_(shared) {}

    void run() {
        while (!shared_.stop.load(std::memory_order_relaxed)) {
            if (may_send()) {
                send_burst();
            } else {
                std::this_thread::yield();
            }
        }
    }

  private:
    [[nodiscard]] bool may_send() {
        const std::uint64_t arrived = shared_.next_number.load(std::memory_order_acquire);
        if (arrived > base_) base_ = arrived;
        if (number_ + burst_ <= base_ + window_) {
            stalled_since_ = never;
            return true;
        }
        // If the last packets of a window are lost, no later packet reveals the loss: give them up after a timeout.
        const Time now = net::now();
        if (stalled_since_ == never) stalled_since_ = now;
        if (now - stalled_since_ > stall) base_ = number_;
        return false;
    }
    void send_burst() {
        for (std::uint32_t at = 0; at < burst_; ++at) {
            const auto room = socket_.reserve(packet_bytes_);
            if (room.empty()) break;
            std::memcpy(room.data(), &number_, sizeof number_);
            ++number_;
            socket_.commit(packet_bytes_, to_);
        }
        socket_.flush();
        shared_.sent.store(number_ - socket_.waiting(), std::memory_order_relaxed);
    }

    UdpSocket& socket_;
    wire::Address to_;
    std::uint32_t packet_bytes_;
    std::uint32_t burst_;
    std::uint64_t window_;
    Shared& shared_;
    std::uint64_t number_ = 0;
    std::uint64_t base_ = 0;
    Time stalled_since_ = never;
};

net::UdpConfig config_of(const Traffic& traffic) {
    net::UdpConfig config;
    config.local = wire::Address::loopback(traffic.family, 0);
    config.mmsg = traffic.mode.mmsg;
    config.gso = traffic.mode.gso;
    config.gro = traffic.mode.gro;
    config.max_packet_bytes = traffic.packet_bytes;
    return config;
}

std::string given_up(const UdpSocket& from, const UdpSocket& to) {
    std::string list;
    for (const Feature feature : {Feature::mmsg, Feature::gso, Feature::gro}) {
        for (const UdpSocket* socket : {&from, &to}) {
            if (!socket->report()[feature].missing()) continue;
            list += std::string(to_string(feature)) + ": " + socket->report()[feature].text + "; ";
        }
    }
    return list;
}

struct Sample {
    std::uint64_t sent;
    std::uint64_t received;
    Time at;
};

Sample sample(const Shared& shared) {
    return {shared.sent.load(std::memory_order_relaxed), shared.received.load(std::memory_order_relaxed), net::now()};
}

double ratio(std::uint64_t above, std::uint64_t below) {
    return below == 0 ? 0.0 : static_cast<double>(above) / static_cast<double>(below);
}

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

Result<Outcome> carry(const Traffic& traffic) {
    auto from = UdpSocket::open(config_of(traffic));
    if (!from) return Failure(std::move(from).error());
    auto to = UdpSocket::open(config_of(traffic));
    if (!to) return Failure(std::move(to).error());
    auto loop = net::EventLoop::open({});
    if (!loop) return Failure(std::move(loop).error());

    Shared shared;
    Receiver receiver(**to, traffic.packet_bytes, shared);
    (*loop)->add(receiver);
    if (auto watched = (*loop)->watch(receiver, (*to)->descriptor(), {}); !watched) {
        return Failure(watched.error());
    }
    Sender sender(**from, (*to)->local(), traffic.packet_bytes, shared);
    Result<void> ran;
    std::thread receiving([&] { ran = (*loop)->run(); });
    std::thread sending([&] { sender.run(); });
    sleep_for(traffic.seconds / 5);
    const Sample begin = sample(shared);
    sleep_for(traffic.seconds);
    // On a busy host, a short round can end before any packet arrives.
    for (int waits = 0; waits < 1000 && sample(shared).received == begin.received; ++waits) sleep_for(0.01);
    const Sample end = sample(shared);
    shared.stop = true;
    (*loop)->stop();
    sending.join();
    receiving.join();
    if (!ran) return Failure(ran.error());

    const double seconds = std::chrono::duration<double>(end.at - begin.at).count();
    const auto packets = static_cast<double>(end.received - begin.received);
    const auto& sent = (*from)->counters();
    const auto& received = (*to)->counters();
    return Outcome{.gbit_per_s = packets * traffic.packet_bytes * 8 / seconds / 1e9,
                   .packets_per_s = packets / seconds,
                   .packets_per_send_call = ratio(sent.sent_packets, sent.send_calls),
                   .packets_per_receive_call = ratio(received.received_packets, received.receive_calls),
                   .lost_share = ratio(received.dropped_packets, sent.sent_packets),
                   .intact = shared.intact && packets > 0,
                   .gave_up = given_up(**from, **to)};
}

}  // namespace atp::bench
