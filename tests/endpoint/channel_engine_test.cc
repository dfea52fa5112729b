// SPDX-License-Identifier: Apache-2.0
#include "endpoint/channel_engine.h"

#include <gtest/gtest.h>

#include <chrono>

#include "support/worker_bench.h"

namespace atp::endpoint {
namespace {

using testing::WorkerBench;

// The engine of ATP, with a tensor of two elements: one fragment.
class AtpEngine : public ::testing::Test {
  protected:
    [[nodiscard]] std::optional<testing::Bytes> transmitted() {
        testing::Bytes bytes(engine_->packet_bytes());
        const auto size = engine_->poll_transmit(bytes, now_);
        if (!size) return std::nullopt;
        bytes.resize(*size);
        return bytes;
    }
    [[nodiscard]] std::uint8_t type_of(const testing::Bytes& bytes) const {
        return wire::load_u8(bytes.data() + ATP_OFFSET_TYPE);
    }

    Time now_ = Time{} + std::chrono::seconds(1);
    std::vector<float> input_{1, 2};
    std::vector<float> output_{0, 0};
    protocol::FloatTensor tensor_{input_, output_, 1};
    protocol::WorkerConfig config_ = WorkerBench::default_config();
    std::unique_ptr<ChannelEngine> engine_ = make_engine(config_);
};

TEST_F(AtpEngine, DescribesThePacketsOfAtp) {
    EXPECT_TRUE(engine_->has_tokens());
    EXPECT_EQ(engine_->answerer(), "parameter server");
    EXPECT_EQ(engine_->packet_bytes(), ATP_HEADER_BYTES + 2 * ATP_LANE_BYTES);
    EXPECT_GT(engine_->window_packets(), 0U);
    EXPECT_FALSE(engine_->failed());
}

TEST_F(AtpEngine, TensorIsCompletedByItsAck) {
    engine_->begin(0, false);
    ASSERT_EQ(engine_->submit(tensor_, now_, never), 0U);
    const auto sent = transmitted();
    ASSERT_TRUE(sent);
    EXPECT_EQ(type_of(*sent), ATP_TYPE_GRADIENT);
    EXPECT_EQ(transmitted(), std::nullopt);
    EXPECT_FALSE(engine_->poll_event());
    EXPECT_EQ(engine_->counters().sent, 1U);

    testing::Bytes ack = *sent;
    atp_header header = wire::detail::load_header(ack.data());
    header.type = ATP_TYPE_ACK;
    header.lanes = ATP_FLOAT32_LANES;
    header.worker = ATP_WORKER_ALL;
    header.argument = 5;
    wire::encode_header(header, ack);
    wire::store_u32(ack.data() + ATP_HEADER_BYTES, std::bit_cast<std::uint32_t>(4.0F));
    wire::store_u32(ack.data() + ATP_HEADER_BYTES + ATP_LANE_BYTES, std::bit_cast<std::uint32_t>(-1.0F));
    engine_->handle_packet(ack, false, now_);
    const auto event = engine_->poll_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, EngineEvent::Kind::completed);
    EXPECT_EQ(output_, (std::vector<float>{4, -1}));
}

TEST_F(AtpEngine, WaitWithMismatchFailsTheTensorAndTheEngine) {
    ASSERT_EQ(engine_->submit(tensor_, now_, never), 0U);
    const auto sent = transmitted();
    ASSERT_TRUE(sent);
    testing::Bytes wait(sent->begin(), sent->begin() + ATP_HEADER_BYTES);
    atp_header header = wire::detail::load_header(wait.data());
    header.type = ATP_TYPE_WAIT;
    header.lanes = ATP_DTYPE_NONE;
    header.argument = ATP_WAIT_MISMATCHED;
    wire::encode_header(header, wait);
    engine_->handle_packet(wait, false, now_);
    const auto event = engine_->poll_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, EngineEvent::Kind::mismatched);
    EXPECT_TRUE(event->answered);
    EXPECT_TRUE(engine_->failed());
    EXPECT_EQ(engine_->submit(tensor_, now_, never), std::nullopt);
}

TEST_F(AtpEngine, TimerSendsAProbeAndLaterTheDeadlineFailsTheTensor) {
    const Time deadline = now_ + std::chrono::seconds(2);
    ASSERT_EQ(engine_->submit(tensor_, now_, deadline), 0U);
    ASSERT_TRUE(transmitted());
    now_ = engine_->poll_timeout();
    ASSERT_LT(now_, deadline);
    engine_->handle_timeout(now_);
    const auto asked = transmitted();
    ASSERT_TRUE(asked);
    EXPECT_EQ(type_of(*asked), ATP_TYPE_PROBE);
    now_ = deadline;
    engine_->handle_timeout(now_);
    const auto event = engine_->poll_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, EngineEvent::Kind::timed_out);
    EXPECT_EQ(event->elapsed, std::chrono::seconds(2));
    EXPECT_FALSE(event->answered);
    EXPECT_EQ(engine_->poll_timeout(), never);
}

}  // namespace
}  // namespace atp::endpoint
