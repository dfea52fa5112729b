// SPDX-License-Identifier: Apache-2.0
// What a shard reports to a trace and to the log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shard_fixture.h"
#include "support/packets.h"

namespace atp::endpoint {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

const protocol::Membership two = *protocol::Membership::star(2);

class RecordingTrace final : public wire::TraceSink {
  public:
    void packet(Time, std::string_view what, std::span<const std::byte> bytes, const wire::Address* peer,
                bool) override {
        EXPECT_EQ(peer, nullptr) << "the event is at the switch";
        const bool is_whole = bytes.size() >= ATP_HEADER_BYTES;
        const auto type = is_whole ? wire::type_to_string(wire::load_u8(bytes.data() + ATP_OFFSET_TYPE)) : "short";
        events.push_back(std::string(what) + ' ' + std::string(type));
    }

    std::vector<std::string> events;
};

// A switch with a trace and two workers that have joined.
struct Traced {
    Traced() : cluster(two) {
        ShardMachineConfig config = shard_config();
        config.trace = &trace;
        shard = &cluster.add_shard(1, config);
        for (std::uint16_t rank = 0; rank < 2; ++rank) cluster.add_worker(rank, 1);
        cluster.join_all();
    }

    RecordingTrace trace;
    Cluster cluster;
    Shard* shard = nullptr;
};

TEST(ShardMachineTrace, GradientsAndTheResultOfTheHostedServerHaveTheEventsOfTheTable) {
    Traced traced;
    traced.cluster.submit(4);
    ASSERT_TRUE(traced.cluster.finish());
    EXPECT_TRUE(traced.cluster.sums_are_right());
    EXPECT_THAT(traced.trace.events, ElementsAre("claimed GRADIENT", "completed GRADIENT", "released ACK"));
}

TEST(ShardMachineTrace, PacketOfAnotherJobAndShortDatagramAreDropped) {
    Traced traced;
    atp_header header{};
    header.type = ATP_TYPE_PROBE;
    header.window_log2 = 3;
    header.job = job + 1, header.token = token, header.channel = channel;
    header.peer = ATP_WORKER_ALL;
    header.bitmap0 = 1, header.mask0 = 3, header.bitmap1 = 1, header.mask1 = 1;
    traced.shard->take(testing::make_packet(header), worker_address(0));
    traced.shard->take(Bytes(7, std::byte{0x41}), worker_address(0));
    EXPECT_THAT(traced.trace.events, ElementsAre("dropped PROBE", "dropped short"));
}

TEST(ShardMachineTrace, NoticesOfTheTreeAreForTheLog) {
    Traced traced;
    std::vector<control::TreeNotice::Kind> kinds;
    while (const auto notice = traced.shard->machine.poll_notice()) kinds.push_back(notice->kind);
    EXPECT_THAT(kinds, Contains(control::TreeNotice::Kind::job_ready));
}

}  // namespace
}  // namespace atp::endpoint
