// SPDX-License-Identifier: Apache-2.0
// Floats of a narrow fragment at the worker, in several packets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/narrow_tensor.h"
#include "support/worker_bench.h"

namespace atp::testing {
namespace {

using Values = std::vector<float>;

TEST(WorkerPackets, H54_WorkerSendsAndResendsAllParts) {
    WorkerBench bench;
    NarrowTensor tensor(ATP_DTYPE_INT8, {1, 2, 3, 4, 5});  // two packets have four words of int8; one word of padding
    ASSERT_TRUE(bench.worker.submit(tensor, bench.now));
    const auto narrow = bench.packets();
    ASSERT_EQ(narrow.size(), 1U);
    EXPECT_EQ(narrow[0].header.lanes, ATP_INT8_LANES);
    EXPECT_EQ(narrow[0].bytes.size(), ATP_HEADER_BYTES + 2 * ATP_LANE_BYTES);
    for (int sending = 0; sending < 2; ++sending) {
        bench.handle(bench.nack(0, ATP_DTYPE_FLOAT32, ATP_FLAG_BYPASS));
        const auto packets = bench.packets();
        ASSERT_EQ(packets.size(), 4U) << "the form decides the number of elements: 8";
        for (unsigned packet = 0; packet < 4; ++packet) {
            const atp_header& header = packets[packet].header;
            EXPECT_EQ(header.lanes, atp_lanes_of(ATP_DTYPE_INT8, ATP_DTYPE_FLOAT32));
            EXPECT_EQ(header.part, packet << ATP_PART_PACKET_SHIFT);
            EXPECT_EQ(packets[packet].has(ATP_FLAG_LAST_RANK), packet == 3);
            EXPECT_TRUE(packets[packet].has(ATP_FLAG_BYPASS));
            EXPECT_TRUE(packets[packet].has(ATP_FLAG_RESEND));
        }
        EXPECT_EQ(floats_in(packets[2].bytes), (Values{5, 0}));
        EXPECT_EQ(floats_in(packets[3].bytes), (Values{0, 0}));
    }
}

TEST(WorkerPackets, H57_WorkerHasItsResultWhenAllPartsAreIn) {
    std::vector<unsigned> order{0, 1, 2, 3};
    do {
        WorkerBench bench;
        NarrowTensor tensor(ATP_DTYPE_INT8, {1, 2, 3, 4, 5, 6, 7});
        ASSERT_TRUE(bench.worker.submit(tensor, bench.now));
        (void)bench.packets();
        for (const unsigned packet : order) {
            EXPECT_TRUE(bench.events().empty()) << packet << " is missing";
            atp_header header = bench.answer(ATP_TYPE_ACK, ATP_DTYPE_FLOAT32, 0);
            header.lanes = atp_lanes_of(ATP_DTYPE_INT8, ATP_DTYPE_FLOAT32);
            header.part = static_cast<std::uint8_t>(packet << ATP_PART_PACKET_SHIFT);
            const auto value = static_cast<float>(10 * packet);
            bench.handle(make_float_packet(header, {value}));  // of another size
            for (int copies = 0; copies < 2; ++copies) bench.handle(make_float_packet(header, {value, value + 1}));
        }
        EXPECT_EQ(bench.events().size(), 1U);
        EXPECT_EQ(tensor.sums(), (Values{0, 1, 10, 11, 20, 21, 30}));
        EXPECT_EQ(tensor.stored(), std::vector<unsigned>(7, 1));
        EXPECT_EQ(bench.worker.counters().refused, 4U);
        EXPECT_EQ(bench.worker.counters().acks, 1U);
    } while (std::ranges::next_permutation(order).found);
}

}  // namespace
}  // namespace atp::testing
