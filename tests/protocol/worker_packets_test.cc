// SPDX-License-Identifier: Apache-2.0
// Narrow fragments at the worker: their floats in several packets, and their integers as int32.
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

TEST(WorkerPackets, NarrowIntegersMayTravelAsInt32) {
    for (const std::uint8_t form : {ATP_DTYPE_INT16, ATP_DTYPE_INT8}) {
        protocol::WorkerConfig config = WorkerBench::default_config();
        config.channel.audit = true;
        config.channel.lanes = 3;
        WorkerBench bench(config);
        bench.worker.use_int32_lanes();
        NarrowTensor tensor(form, {1, -2, 127, -127, 5});
        ASSERT_TRUE(bench.worker.submit(tensor, bench.now));
        const auto packets = bench.packets();
        ASSERT_EQ(packets.size(), 3U) << "fragments of two elements";
        const Lanes expected[] = {{1, -2}, {127, -127}, {5}};
        for (std::uint32_t seq = 0; seq < 3; ++seq) {
            EXPECT_EQ(packets[seq].header.lanes, ATP_INT32_LANES);
            EXPECT_EQ(packets[seq].header.argument, 0U) << "that of a fragment of int32";
            Lanes lanes = lanes_in(packets[seq].bytes);
            lanes.pop_back();
            EXPECT_EQ(lanes, expected[seq]);
            bench.handle(bench.ack(seq, static_cast<float>(seq)));
        }
        EXPECT_EQ(bench.events().size(), 1U);
        EXPECT_EQ(tensor.sums(), (Values{0, 0, 1, 1, 2}));
        EXPECT_EQ(tensor.stored(), std::vector<unsigned>(5, 1));
    }
}

// The bits must not depend on the path: what the narrow form sends as float32, this path sends so, too.
TEST(WorkerPackets, ANumberThatIsTooLargeForTheNarrowFormTravelsAsAFloat) {
    WorkerBench bench;
    bench.worker.use_int32_lanes();
    NarrowTensor tensor(ATP_DTYPE_INT16, {1, 40000, 3});
    ASSERT_TRUE(bench.worker.submit(tensor, bench.now));
    const auto packets = bench.packets();
    ASSERT_EQ(packets.size(), 2U);
    EXPECT_EQ(packets[0].header.lanes, ATP_FLOAT32_LANES);
    EXPECT_EQ(floats_in(packets[0].bytes), (Values{1, 40000}));
    EXPECT_EQ(packets[0].header.part, 0U) << "one packet has the floats of a fragment of int32";
    EXPECT_TRUE(packets[0].has(ATP_FLAG_BYPASS));
    EXPECT_EQ(packets[1].header.lanes, ATP_INT32_LANES);
    EXPECT_FALSE(packets[1].has(ATP_FLAG_BYPASS));
}

}  // namespace
}  // namespace atp::testing
