// SPDX-License-Identifier: Apache-2.0
// A switch in the path of some ranks adds int32 lanes alone (docs/spec/numbers.md#int32-paths). Here a leaf's socket
// stands for it: it marks the JOINs that arrive.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fabric.h"
#include "net/udp_socket.h"
#include "wire/control.h"

namespace atp::test {
namespace {

using tensor::LaneType;

constexpr std::uint32_t ranks = 4;
constexpr std::size_t elements = 6001;  // two spans
constexpr int rounds = 3;

class MarkingSocket final : public net::Transport {
  public:
    explicit MarkingSocket(std::unique_ptr<net::Transport> socket) : socket_(std::move(socket)) {}

    [[nodiscard]] Result<std::size_t> receive(std::span<wire::Datagram> datagrams) override {
        auto count = socket_->receive(datagrams);
        if (!count) return count;
        for (wire::Datagram& datagram : datagrams.first(*count)) {
            constexpr std::size_t int32_path_at = 122;
            if (wire::control_type(datagram.bytes) != wire::ControlType::join) continue;
            datagram.bytes[int32_path_at] = std::byte{1};
        }
        return count;
    }
    [[nodiscard]] std::span<std::byte> reserve(std::size_t bytes) override { return socket_->reserve(bytes); }
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) override { socket_->commit(bytes, to, ecn); }
    [[nodiscard]] bool borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) override {
        return socket_->borrow(bytes, to, ecn);
    }
    [[nodiscard]] bool repeat(const wire::Address& to) override { return socket_->repeat(to); }
    net::Flush flush() override { return socket_->flush(); }
    [[nodiscard]] std::uint32_t waiting() const override { return socket_->waiting(); }
    [[nodiscard]] bool has_more() const override { return socket_->has_more(); }
    [[nodiscard]] std::size_t take_errors(std::span<wire::SendError> errors) override {
        return socket_->take_errors(errors);
    }
    void reach_group(const wire::Address& group, const wire::Address& from) override {
        socket_->reach_group(group, from);
    }
    void forget_group(const wire::Address& group) override { socket_->forget_group(group); }
    [[nodiscard]] const wire::Address& local() const override { return socket_->local(); }
    [[nodiscard]] int descriptor() const override { return socket_->descriptor(); }
    [[nodiscard]] const net::UdpReport& report() const override { return socket_->report(); }
    [[nodiscard]] const net::UdpCounters& counters() const override { return socket_->counters(); }

  private:
    std::unique_ptr<net::Transport> socket_;
};

switchd::SwitchNodeConfig marking_switch() {
    switchd::SwitchNodeConfig config = small_switch();
    config.open_transport = [](const net::UdpConfig& udp,
                               std::uint32_t /*shard*/) -> Result<std::unique_ptr<net::Transport>> {
        auto socket = net::UdpSocket::open(udp);
        if (!socket) return tl::unexpected(socket.error());
        return std::make_unique<MarkingSocket>(*std::move(socket));
    };
    return config;
}

struct Outcome {
    std::set<std::vector<std::uint32_t>> bits;  // of all rounds, as any rank has them
    int logged = 0;
};

// Ranks at two leaves under a root sum in a narrow form.
Outcome sums(LaneType lane_type, const switchd::SwitchNodeConfig& second_leaf) {
    const auto root = start(small_switch());
    switchd::SwitchNodeConfig leaf = small_switch();
    switchd::SwitchNodeConfig other = second_leaf;
    leaf.parent = other.parent = root->address();
    const auto first = start(leaf);
    const auto second = start(other);
    Outcome outcome;
    std::mutex mutex;
    Job job(ranks, {address_of(*first), address_of(*second)});
    job.options().channels = 2;
    job.options().scaling = tensor::Scaling::dynamic;
    job.options().lane_type = lane_type;
    job.options().log_receiver = [&](observe::Severity, std::string_view line) {
        const std::scoped_lock lock(mutex);
        if (line.starts_with("int32 fallback")) ++outcome.logged;
    };
    job.run([&](comm::Communicator& communicator) {
        std::vector<std::uint32_t> bits;
        for (int round = 0; round < rounds; ++round) {
            std::vector<float> values(elements);
            for (std::size_t at = 0; at < elements; ++at) {
                values[at] =
                    std::sin(static_cast<float>(at * 7 + communicator.rank() * 13) + static_cast<float>(round));
            }
            // A number that is too large for the narrow form, in later rounds.
            if (round == rounds - 1 && communicator.rank() == 1) values[40] = 1e6F;
            if (!succeeds(sum_in_place(communicator, values))) return;
            for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
        }
        const std::scoped_lock lock(mutex);
        outcome.bits.insert(std::move(bits));
    });
    return outcome;
}

// docs/spec/hazards.md#h81
TEST(Int32Path, H81_AllRanksSendInt32IfOnePathNeedsItAndTheBitsStay) {
    for (const LaneType lane_type : {LaneType::int16, LaneType::int8}) {
        const Outcome narrow = sums(lane_type, small_switch());
        const Outcome wide = sums(lane_type, marking_switch());
        EXPECT_EQ(narrow.bits.size(), 1U);
        EXPECT_EQ(wide.bits, narrow.bits);
        EXPECT_EQ(narrow.logged, 0);
        EXPECT_EQ(wide.logged, static_cast<int>(ranks)) << "once a rank, although it has two channels";
    }
}

}  // namespace
}  // namespace atp::test
