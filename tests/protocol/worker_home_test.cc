// SPDX-License-Identifier: Apache-2.0
// Sums for a worker that stays at home. hazards/hazard_home_test.cc tests whole networks.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/owned_tensor.h"
#include "support/worker_bench.h"

namespace atp::protocol {
namespace {

using testing::OwnedTensor;
using testing::WorkerBench;
using testing::WorkerPacket;

// Worker 1 of three. Of the fragments 0 to 8, it owns 1, 4 and 7.
class WorkerHome : public ::testing::Test {
  protected:
    WorkerBench bench;
    OwnedTensor tensor{{.workers = 3, .fragment = 2}, std::vector<std::int32_t>(18, 5)};

    void handle_sum(std::uint32_t seq, std::uint16_t flags) {
        atp_header header =
            bench.answer(ATP_TYPE_ACK, ATP_DTYPE_INT32, seq, static_cast<std::uint16_t>(flags | ATP_FLAG_PLAIN));
        header.peer = 1;
        testing::Bytes bytes = testing::make_packet(header, {8, 9});
        bench.worker.handle_packet(bytes, false, bench.now);
    }
};

TEST_F(WorkerHome, SendsTheFirstOfItsOwnFragmentsAndAReadyForAllOthers) {
    ASSERT_TRUE(bench.worker.submit(tensor, bench.now));
    std::vector<std::uint32_t> own;
    std::uint32_t ready_until = 0;
    for (const WorkerPacket& packet : bench.packets()) {
        if (packet.is(ATP_TYPE_READY)) ready_until = packet.header.argument;
        if (!packet.is(ATP_TYPE_GRADIENT)) continue;
        const bool is_own = packet.header.peer == 1;
        if (is_own) own.push_back(packet.header.seq);
        EXPECT_EQ(packet.has(ATP_FLAG_BYPASS), is_own);
        EXPECT_EQ(packet.header.mask0, is_own ? 0b111U : 0b111U & ~(1U << packet.header.peer));
    }
    EXPECT_EQ(own, std::vector<std::uint32_t>{1});
    EXPECT_EQ(ready_until, 9U);
}

TEST_F(WorkerHome, AddsItsNumbersUnlessTheSumIsWhole) {
    ASSERT_TRUE(bench.worker.submit(tensor, bench.now));
    (void)bench.packets();
    handle_sum(1, ATP_FLAG_WHOLE);
    handle_sum(4, 0);
    EXPECT_EQ(tensor.output()[2], 8);
    EXPECT_EQ(tensor.output()[8], 13);
    EXPECT_EQ(tensor.output()[9], 14);
}

TEST_F(WorkerHome, ANackBringsItsNumbersPastAllSwitches) {
    ASSERT_TRUE(bench.worker.submit(tensor, bench.now));
    (void)bench.packets();
    testing::Bytes nack = testing::make_packet(bench.answer(ATP_TYPE_NACK, ATP_DTYPE_INT32, 4));
    bench.worker.handle_packet(nack, false, bench.now);
    const auto packets = bench.packets();
    ASSERT_EQ(packets.size(), 1U);
    EXPECT_EQ(packets[0].header.seq, 4U);
    EXPECT_TRUE(packets[0].has(ATP_FLAG_BYPASS) && packets[0].has(ATP_FLAG_RESEND));
}

}  // namespace
}  // namespace atp::protocol
