// SPDX-License-Identifier: Apache-2.0
// Somebody who reads all packets of a job with a key, and sends in the names of its ranks and of its switch.
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "messages.h"
#include "site.h"
#include "wire/packet.h"

namespace atp::test {
namespace {

class OnTheWire : public Site {
  protected:
    // Sums go on until `forge` has run as often as asked.
    static void expect_sums_during(const std::vector<std::unique_ptr<comm::Communicator>>& ranks, int times,
                                   const std::function<void()>& forge) {
        std::atomic<int> done{0};
        const std::jthread forger([&](const std::stop_token& stop) {
            for (; !stop.stop_requested() && done < times; ++done) {
                forge();
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
            }
        });
        EXPECT_TRUE(eventually([&] {
            expect_sums(ranks, 1);
            return done >= times || HasFailure();
        }));
    }
    // What a rank's JOINs show of its channel.
    static Target shown_by(const wire::Join& join, std::uint32_t seq = 0) {
        return {
            .job = join.terms.job, .token = join.terms.token, .nonce = join.nonce, .epoch = join.epoch + 1, .seq = seq};
    }
};

TEST_F(OnTheWire, ForgedControlMessagesChangeNothing) {
    const SwitchProcess node(asking());
    Wiretap tap(node.address());
    const auto ranks = Job(2, {tap.address()}, options_of("vision")).formed();
    ASSERT_EQ(ranks.size(), 2U);
    const auto joins = tap.last<wire::Join>();
    ASSERT_EQ(joins.size(), 2U);
    std::vector<Wiretap::Datagram> controls = tap.recorded();
    std::erase_if(controls, [](const auto& datagram) { return !wire::control_type(datagram.bytes); });
    int round = 0;
    expect_sums_during(ranks, 30, [&] {
        ++round;
        for (const auto& [client, join] : tap.last<wire::Join>()) {
            for (const Forgery& forgery : control_forgeries(shown_by(join))) {
                tap.send({Way::there, client, forgery.bytes});
                tap.send({Way::back, client, forgery.bytes});
            }
            wire::Join taken = join;  // whole, but for another number, and without a code
            taken.epoch += 1000;
            tap.send({Way::there, client, bytes_of(wire::JoiningMessage(taken))});
        }
        // What they said themselves, with one byte changed.
        std::size_t place = static_cast<std::size_t>(round) * 7;
        for (Wiretap::Datagram datagram : controls) {
            datagram.bytes[place++ % datagram.bytes.size()] ^= std::byte{1} << (round % 8);
            tap.send(datagram);
        }
    });
    EXPECT_EQ(node.members_of(*ranks[0]->formation().job), 2U);
    EXPECT_GT(node.report().shards[0].tree.unproven + node.report().shards[0].tree.forged, 100U);
}

TEST_F(OnTheWire, NoForgedPacketEndsAJob) {
    const SwitchProcess node(asking());
    Wiretap tap(node.address());
    const auto ranks = Job(2, {tap.address()}, options_of("vision")).formed();
    ASSERT_EQ(ranks.size(), 2U);
    expect_sums(ranks, 1);
    const auto joins = tap.last<wire::Join>();
    const auto forge = [&] {
        const std::uint32_t seq = tap.last_gradient()->seq;
        for (std::uint32_t ahead = 0; ahead < 3; ++ahead) {
            for (const auto& [client, join] : joins) {
                for (const Forgery& forgery : packet_forgeries(shown_by(join, seq + ahead), false)) {
                    tap.send({Way::there, client, forgery.bytes});
                    tap.send({Way::back, client, forgery.bytes});
                }
            }
        }
    };
    expect_sums_during(ranks, 100, forge);
    EXPECT_EQ(node.members_of(*ranks[0]->formation().job), 2U);
}

// What remains without a key, and without a seal: the page of threats says so.
TEST_F(OnTheWire, WithoutAKeyAForgedPacketEndsAJob) {
    const SwitchProcess node(open());
    Wiretap tap(node.address());
    const auto ranks = Job(2, {tap.address()}, options_of("")).formed();
    ASSERT_EQ(ranks.size(), 2U);
    expect_sums(ranks, 1);
    const std::pair<wire::Address, wire::Join> member = tap.last<wire::Join>().front();
    std::atomic<bool> failed{false};
    const std::jthread forger([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            const Target target = shown_by(member.second, tap.last_gradient()->seq);
            for (const Forgery& forgery : packet_forgeries(target, false)) {
                if (forgery.name == "WAIT 1") tap.send({Way::back, member.first, forgery.bytes});
            }
        }
    });
    EXPECT_TRUE(eventually([&] {
        each(2, [&](std::uint32_t rank) {
            std::vector<float> values(several_windows, 1.0F);
            const auto work = sum_in_place(*ranks[rank], values);
            if (!work || !(*work)->wait()) failed = true;
        });
        return failed.load();
    }));
}

TEST_F(OnTheWire, WithoutASealAChangedSumIsNotNoticed) {
    const SwitchProcess node(asking());
    std::atomic<bool> changed{false};
    Wiretap tap(node.address(), [&](Way way, const wire::Address&, Bytes& bytes) {
        wire::Packet packet;
        if (way != Way::there || wire::decode(bytes, packet) != wire::DecodeError::none) return;
        if (packet.header.type != ATP_TYPE_GRADIENT || packet.lane_count() < small_lanes || changed.exchange(true))
            return;
        packet.lanes[1] ^= std::byte{1};
    });
    const auto ranks = Job(2, {tap.address()}, options_of("vision")).formed();
    ASSERT_EQ(ranks.size(), 2U);
    each(2, [&](std::uint32_t rank) {
        std::vector<float> values(several_windows, 0.5F);
        EXPECT_TRUE(succeeds(sum_in_place(*ranks[rank], values)));
        EXPECT_NE(values, std::vector<float>(values.size(), 1.0F));
    });
}

}  // namespace
}  // namespace atp::test
