// SPDX-License-Identifier: Apache-2.0
// What a worker does with fragments that have an owner. hazards/hazard_delivery_test.cc tests whole networks.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/owned_tensor.h"
#include "support/worker_bench.h"
#include "wire/ack_list.h"

namespace atp::protocol {
namespace {

using testing::OwnedTensor;
using testing::WorkerBench;
using testing::WorkerPacket;

// Worker 1 of three, with a window of 16 fragments of two lanes.
class WorkerDelivery : public ::testing::Test {
  protected:
    WorkerBench bench;
    OwnedTensor tensor{{.workers = 3, .fragment = 2, .one_sender = true}, std::vector<std::int32_t>(2 * 30, 5)};
    OwnedTensor sums{{.workers = 3, .fragment = 2}, std::vector<std::int32_t>(2 * 60, 5)};

    // Submits the tensor, and sends what the window permits.
    void send(OwnedTensor& submitted) {
        ASSERT_TRUE(bench.worker.submit(submitted, bench.now));
        (void)bench.packets();
    }
    // Without lanes, of a sum for another worker.
    [[nodiscard]] testing::Bytes ack_of_sum(std::uint32_t seq) const {
        atp_header header = bench.answer(ATP_TYPE_ACK, ATP_DTYPE_NONE, seq, ATP_FLAG_PLAIN);
        header.peer = static_cast<std::uint16_t>(seq % 3);
        return testing::make_packet(header, {});
    }
    // Of those, what the worker sends again.
    static std::vector<std::uint32_t> resent(const std::vector<WorkerPacket>& packets) {
        std::vector<std::uint32_t> found;
        for (const WorkerPacket& packet : packets) {
            if (packet.has(ATP_FLAG_RESEND)) found.push_back(packet.header.seq);
        }
        return found;
    }
    [[nodiscard]] testing::Bytes list_of(const std::vector<std::uint32_t>& sequences) const {
        wire::AckList list;
        for (const std::uint32_t seq : sequences) list.add(ack_of_sum(seq));
        return {list.packet().begin(), list.packet().end()};
    }
    [[nodiscard]] testing::Bytes ack(std::uint32_t seq, bool with_lanes, std::uint16_t owner) const {
        atp_header header = bench.answer(ATP_TYPE_ACK, with_lanes ? ATP_DTYPE_INT32 : ATP_DTYPE_NONE, seq,
                                         ATP_FLAG_ONE_SENDER | ATP_FLAG_PLAIN);
        header.peer = owner;
        return testing::make_packet(header, with_lanes ? testing::Lanes{8, 9} : testing::Lanes{});
    }
    static std::size_t count(const std::vector<WorkerPacket>& packets, atp_type type) {
        std::size_t found = 0;
        for (const WorkerPacket& packet : packets) found += packet.is(type) ? 1U : 0U;
        return found;
    }
};

TEST_F(WorkerDelivery, SendsItsOwnFragmentsAndAReadyForEachQuarterOfTheWindow) {
    ASSERT_TRUE(bench.worker.submit(tensor, bench.now));
    const auto packets = bench.packets();
    EXPECT_EQ(count(packets, ATP_TYPE_GRADIENT), 5U);  // 1, 4, 7, 10 and 13 of 0 to 15
    EXPECT_EQ(count(packets, ATP_TYPE_READY), 4U);
    for (const WorkerPacket& packet : packets) {
        if (packet.is(ATP_TYPE_GRADIENT)) {
            EXPECT_EQ(packet.header.seq % 3, 1U);
            EXPECT_EQ(packet.header.peer, 1U);
            EXPECT_TRUE(packet.has(ATP_FLAG_BYPASS) && packet.has(ATP_FLAG_ONE_SENDER));
        } else {
            EXPECT_EQ(packet.header.argument % 4, 0U);
        }
    }
}

TEST_F(WorkerDelivery, AnExpiryRepeatsTheReady) {
    send(tensor);
    bench.expire();
    const auto packets = bench.packets();
    EXPECT_EQ(count(packets, ATP_TYPE_READY), 1U);
    EXPECT_EQ(packets.back().header.argument, 16U);
    EXPECT_EQ(count(packets, ATP_TYPE_PROBE), 8U);
}

TEST_F(WorkerDelivery, ThreeLaterFragmentsOfTheSameOwnerProveALoss) {
    send(tensor);
    for (const std::uint32_t seq : {3U, 6U}) bench.handle(ack(seq, true, 0));
    for (const std::uint32_t seq : {2U, 5U, 8U}) bench.handle(ack(seq, true, 2));
    EXPECT_EQ(count(bench.packets(), ATP_TYPE_PROBE), 0U);
    bench.handle(ack(9, true, 0));
    const auto asked = bench.packets();
    ASSERT_EQ(count(asked, ATP_TYPE_PROBE), 1U);
    EXPECT_EQ(asked[0].header.seq, 0U);
    for (const std::uint32_t seq : {4U, 7U, 10U}) bench.handle(ack(seq, false, 1));
    const auto resent = bench.packets();
    ASSERT_FALSE(resent.empty());
    EXPECT_TRUE(resent[0].is(ATP_TYPE_GRADIENT) && resent[0].has(ATP_FLAG_RESEND));
    EXPECT_EQ(resent[0].header.seq, 1U);
}

TEST_F(WorkerDelivery, H61_ThreeLaterSumsOfTheSameOwnerProveALoss) {
    send(sums);
    for (const std::uint32_t seq : {2U, 5U, 8U, 3U, 6U}) bench.handle(ack_of_sum(seq));
    EXPECT_EQ(resent(bench.packets()), std::vector<std::uint32_t>{});
    EXPECT_EQ(bench.worker.counters().halvings, 0U);
    bench.handle(ack_of_sum(9));
    EXPECT_EQ(resent(bench.packets()), std::vector<std::uint32_t>{0});
}

TEST_F(WorkerDelivery, EachAckOfAListCountsLikeOneThatArrivedAlone) {
    send(sums);
    bench.handle(list_of({0, 2, 3, 5}));
    EXPECT_EQ(bench.worker.counters().acks, 4U);
    EXPECT_EQ(bench.worker.expected(), 1U) << "1 is a sum for this worker";
    bench.handle(list_of({1, 0}));
    EXPECT_EQ(bench.worker.counters().acks, 4U) << "it takes its sum only with lanes";
    EXPECT_EQ(bench.worker.counters().stale_acks, 1U);
    EXPECT_EQ(bench.worker.counters().refused, 0U);
}

TEST_F(WorkerDelivery, MarkOfAListCountsForItsAcks) {
    send(sums);
    bench.handle(list_of({0, 2}), true);
    EXPECT_EQ(bench.worker.counters().acks, 2U);
    bench.handle(bench.nack(3));
    const auto packets = bench.packets();
    ASSERT_FALSE(packets.empty());
    EXPECT_TRUE(packets[0].is(ATP_TYPE_GRADIENT) && packets[0].has(ATP_FLAG_ECN_DOWN));
}

TEST_F(WorkerDelivery, BadAckOfAListIsRefusedAlone) {
    send(sums);
    testing::Bytes list = list_of({0, 2, 3});
    wire::store_u16(list.data() + ATP_HEADER_BYTES + 8, ATP_FLAG_ALL + 1);
    bench.handle(list);
    EXPECT_EQ(bench.worker.counters().acks, 2U);
    EXPECT_EQ(bench.worker.counters().refused, 1U);
}

TEST_F(WorkerDelivery, H89_ListWithAnotherTokenAcknowledgesNothing) {
    send(sums);
    testing::Bytes list = list_of({0, 2, 3});
    wire::store_u64(list.data() + ATP_OFFSET_TOKEN, 0xbad);
    bench.handle(list);
    EXPECT_EQ(bench.worker.counters().forged, 1U);
    EXPECT_EQ(bench.worker.counters().acks, 0U);
}

// A lost list has the ACKs of several fragments. Later ones of the same owners overtake them like ACKs that were lost
// one by one: the window halves once.
TEST_F(WorkerDelivery, H89_LostListHalvesTheWindowOnce) {
    send(sums);
    bench.handle(list_of({6, 8, 9, 11, 12, 14}));
    EXPECT_EQ(bench.worker.counters().halvings, 1U);
    EXPECT_EQ(resent(bench.packets()), (std::vector<std::uint32_t>{0, 3, 2, 5}));
}

// The first operation has 16 fragments, so the second one begins with an owner of 1.
TEST_F(WorkerDelivery, ALostResendOfASumIsSentAgainAfterThreeNewerAcks) {
    protocol::WorkerConfig config = WorkerBench::default_config();
    config.channel.window_log2 = 6;
    bench = WorkerBench(config);
    OwnedTensor first{{.workers = 3, .fragment = 2}, std::vector<std::int32_t>(2 * 16, 5)};
    OwnedTensor second{{.workers = 3, .fragment = 2, .first_owner = 1}, std::vector<std::int32_t>(2 * 16, 5)};
    send(first);
    for (const std::uint32_t seq : {3U, 6U, 9U}) bench.handle(ack_of_sum(seq));
    ASSERT_EQ(resent(bench.packets()), std::vector<std::uint32_t>{0});
    send(second);
    for (const std::uint32_t seq : {12U, 15U, 18U, 21U}) bench.handle(ack_of_sum(seq));
    EXPECT_EQ(resent(bench.packets()), std::vector<std::uint32_t>{}) << "two of them were sent before the resend";
    bench.handle(ack_of_sum(24));
    EXPECT_EQ(resent(bench.packets()), std::vector<std::uint32_t>{0});
}

TEST_F(WorkerDelivery, ACopyOfItsOwnLanesIsIgnored) {
    send(tensor);
    bench.handle(ack(1, true, 1));
    EXPECT_EQ(bench.worker.counters().acks + bench.worker.counters().refused, 0U);
    bench.handle(ack(1, false, 1));
    EXPECT_EQ(bench.worker.counters().acks, 1U);
    EXPECT_EQ(tensor.output()[2], OwnedTensor::untouched);
}

TEST_F(WorkerDelivery, ANackForWhatOthersSendIsRefused) {
    send(tensor);
    bench.handle(bench.nack(0));
    EXPECT_EQ(bench.worker.counters().refused, 1U);
    bench.handle(bench.nack(1));
    EXPECT_EQ(bench.worker.counters().nacks, 1U);
}

}  // namespace
}  // namespace atp::protocol
