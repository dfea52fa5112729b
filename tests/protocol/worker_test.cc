// SPDX-License-Identifier: Apache-2.0
// Guarantees of one worker: the packets that it sends, and the results and events that it gives to the caller.
// worker_recovery_test.cc tests losses, worker_timer_test.cc timers.
#include "protocol/worker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "support/random.h"
#include "support/worker_bench.h"

namespace atp::protocol {
namespace {

using testing::Bytes;
using testing::lanes_in;
using testing::Random;
using testing::WorkerBench;
using testing::WorkerPacket;
using Sequences = std::vector<std::uint32_t>;
using Values = std::vector<float>;

// --- sending

TEST(WorkerTest, FragmentCarriesItsPositionInTheTree) {
    WorkerBench bench;
    ASSERT_EQ(bench.submit({7, -8}), 0U);
    const auto packets = bench.packets();
    ASSERT_EQ(packets.size(), 1U);
    const atp_header expected = testing::gradient_of(bench.config.channel, WorkerBench::members(), 1, 0);
    EXPECT_EQ(wire::to_string(packets[0].header, 2), wire::to_string(expected, 2));
    EXPECT_EQ(lanes_in(packets[0].bytes), (testing::Lanes{7, -8}));
}

TEST(WorkerTest, DirectWorkerStartsAtLevelOne) {
    WorkerConfig config = WorkerBench::default_config();
    config.place = Membership::make({Unit{.ranks = {0}}, Unit{.ranks = {1}, .direct = true}})->place(1);
    WorkerBench bench(config);
    ASSERT_TRUE(bench.submit({1, 2}).has_value());
    EXPECT_EQ(bench.packets().at(0).header.hop, 1);
    EXPECT_EQ(bench.config.place.unit, 1);
}

TEST(WorkerTest, LastFragmentHasOnlyTheRemainingElements) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit({1, 2, 3}).has_value());
    const auto packets = bench.packets();
    ASSERT_EQ(packets.size(), 2U);
    EXPECT_EQ(lanes_in(packets[1].bytes), (testing::Lanes{3}));
}

TEST(WorkerTest, TensorsUseConsecutiveSequenceNumbers) {
    WorkerBench bench;
    ASSERT_EQ(bench.submit({1, 2, 3}), 0U);
    ASSERT_EQ(bench.submit({4}), 1U);
    EXPECT_EQ(bench.sequences(), (Sequences{0, 1, 2}));
}

TEST(WorkerTest, FragmentsInFlightStayWithinTheWindow) {
    WorkerBench bench;  // W = 16
    ASSERT_TRUE(bench.submit_fragments(100).has_value());
    EXPECT_EQ(bench.sequences().size(), 16U);
    for (std::uint32_t seq = 1; seq < 16; ++seq) bench.handle(bench.ack(seq));
    for (const WorkerPacket& packet : bench.packets())
        EXPECT_LT(packet.header.seq, 16U) << "fragment 0 has no ACK yet, so the window ends before fragment 16";
    bench.handle(bench.ack(0));
    EXPECT_EQ(bench.sequences().size(), 16U);
}

TEST(WorkerTest, FragmentsInFlightStayWithinTheCongestionWindow) {
    WorkerConfig config = WorkerBench::default_config();
    config.congestion.initial_packets = 3;
    config.congestion.step_bytes = 1;  // the window grows by one packet per ACK
    WorkerBench bench(config);
    ASSERT_TRUE(bench.submit_fragments(100).has_value());
    EXPECT_EQ(bench.sequences(), (Sequences{0, 1, 2}));
    bench.handle(bench.ack(0));
    EXPECT_EQ(bench.sequences(), (Sequences{3, 4}))
        << "the ACK ends one fragment in flight and raises the window from 3 to 4";
}

TEST(WorkerTest, NewFragmentsWaitForATrainWhileTwoTrainsAreInFlight) {
    WorkerConfig config = WorkerBench::default_config();  // W = 16
    config.train = 4;
    WorkerBench bench(config);
    ASSERT_TRUE(bench.submit_fragments(100).has_value());
    EXPECT_EQ(bench.sequences().size(), 16U);
    for (std::uint32_t seq = 0; seq < 3; ++seq) {
        bench.handle(bench.ack(seq));
        EXPECT_TRUE(bench.sequences().empty()) << "room for " << seq + 1 << " fragments";
    }
    bench.handle(bench.ack(3));
    EXPECT_EQ(bench.sequences(), (Sequences{16, 17, 18, 19}));
}

TEST(WorkerTest, NothingWaitsForATrainIfFewFragmentsAreInFlight) {
    WorkerConfig config = WorkerBench::default_config();
    config.train = 4;
    config.congestion.initial_packets = 16;
    WorkerBench bench(config);
    ASSERT_TRUE(bench.submit_fragments(100).has_value());
    EXPECT_EQ(bench.sequences().size(), 16U);
    // Fragment 0 keeps its slot, so only the slots limit the worker, and ACKs leave it fewer than 8 in flight.
    for (std::uint32_t seq = 1; seq < 10; ++seq) bench.handle(bench.ack(seq));
    bench.handle(bench.nack(0));
    EXPECT_EQ(bench.sequences(), (Sequences{0})) << "a resend waits for nothing";
    bench.handle(bench.ack(0));
    EXPECT_EQ(bench.sequences().size(), 10U);
}

TEST(WorkerTest, EndOfATensorWaitsForNoTrain) {
    WorkerConfig config = WorkerBench::default_config();
    config.train = 4;
    WorkerBench bench(config);
    ASSERT_TRUE(bench.submit_fragments(18).has_value());
    EXPECT_EQ(bench.sequences().size(), 16U);
    bench.handle(bench.ack(0));
    EXPECT_TRUE(bench.sequences().empty());
    bench.handle(bench.ack(1));
    EXPECT_EQ(bench.sequences(), (Sequences{16, 17})) << "the tensor has no further fragment";
}

// A tensor of which only the first `elements_ready` elements are ready.
class SlowTensor final : public Tensor {
  public:
    explicit SlowTensor(std::span<const float> values) : values_(values.begin(), values.end()) {}

    [[nodiscard]] std::uint64_t size() const override { return values_.size(); }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override {
        return first + count <= elements_ready;
    }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override {
        return numeric::quantise(&values_[first], lanes.size() / ATP_LANE_BYTES, 1, lanes.data());
    }
    void load_floats(std::uint64_t /*first*/, std::span<std::byte> /*lanes*/) const override {}
    void store(std::uint64_t /*first*/, std::span<const std::byte> /*lanes*/) override {}

    std::uint64_t elements_ready = 0;

  private:
    Values values_;
};

// Stands for two ranks. Its second element is no integer.
class TensorOfTwoRanks final : public Tensor {
  public:
    [[nodiscard]] std::uint64_t size() const override { return 2; }
    [[nodiscard]] bool load_integers(std::uint64_t /*first*/, std::span<std::byte> /*lanes*/) const override {
        return false;
    }
    void load_floats(std::uint64_t /*first*/, std::span<std::byte> /*lanes*/) const override { ADD_FAILURE(); }
    [[nodiscard]] unsigned float_ranks() const override { return 2; }
    void load_floats_of(unsigned rank, std::uint64_t /*first*/, std::span<std::byte> lanes) const override {
        wire::store_u32(lanes.data(), rank);
    }
    void store(std::uint64_t /*first*/, std::span<const std::byte> /*lanes*/) override {}
};

// docs/spec/hazards.md#h48
TEST(WorkerTest, H48_FloatsTravelRankByRankAndAreResentTogether) {
    WorkerBench bench;
    TensorOfTwoRanks tensor;
    ASSERT_TRUE(bench.worker.submit(tensor, bench.now));
    for (int sending = 0; sending < 2; ++sending) {
        const auto packets = bench.packets();
        ASSERT_EQ(packets.size(), 2U);
        for (unsigned rank = 0; rank < 2; ++rank) {
            const atp_header& header = packets[rank].header;
            EXPECT_EQ(header.part, rank + 1);
            EXPECT_EQ((header.flags & ATP_FLAG_LAST_RANK) != 0, rank == 1);
            EXPECT_EQ((header.flags & ATP_FLAG_RESEND) != 0, sending == 1);
            EXPECT_NE(header.flags & ATP_FLAG_BYPASS, 0);
        }
        bench.handle(bench.nack(0));
    }
}

TEST(WorkerTest, FragmentThatIsNotReadyHoldsBackLaterOnes) {
    WorkerBench bench;
    SlowTensor slow(Values{1, 2, 3, 4, 5});
    ASSERT_TRUE(bench.worker.submit(slow, bench.now).has_value());
    ASSERT_TRUE(bench.submit({6}).has_value());
    EXPECT_EQ(bench.sequences(), Sequences{});
    EXPECT_EQ(bench.worker.poll_timeout(), never) << "no fragment is in flight";
    slow.elements_ready = 3;  // one and a half fragments
    EXPECT_EQ(bench.sequences(), Sequences{0});
    slow.elements_ready = 5;
    EXPECT_EQ(bench.sequences(), (Sequences{1, 2, 3}));
}

TEST(WorkerTest, TensorThatIsNeverReadyTimesOut) {
    WorkerBench bench;
    SlowTensor slow(Values{1, 2});
    ASSERT_TRUE(bench.worker.submit(slow, bench.now, bench.now + std::chrono::seconds(1)).has_value());
    EXPECT_EQ(bench.sequences(), Sequences{});
    bench.expire();
    const auto events = bench.events();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].kind, WorkerEvent::Kind::timed_out);
}

TEST(WorkerTest, SequenceNumbersWrap) {
    WorkerConfig config = WorkerBench::default_config();
    config.channel.first_seq = 0xfffffffeU;
    WorkerBench bench(config);
    ASSERT_TRUE(bench.submit({1, 2, 3, 4, 5, 6}).has_value());
    EXPECT_EQ(bench.sequences(), (Sequences{0xfffffffeU, 0xffffffffU, 0}));
    for (const std::uint32_t seq : {0U, 0xffffffffU, 0xfffffffeU})
        bench.handle(bench.ack(seq, static_cast<float>(seq & 3U)));
    EXPECT_EQ(bench.events().size(), 1U);
    EXPECT_EQ(bench.outputs[0], (Values{2, 2, 3, 3, 0, 0}));
    EXPECT_EQ(bench.worker.expected(), 1U);
}

// Collects the 32-bit fields of a worker's state. It is the argument of persist().
struct FieldReader {
    static constexpr bool reads = false;

    std::vector<std::uint32_t> fields;

    void value(const auto&) {}
    void value(std::uint32_t& field) { fields.push_back(field); }
    void stamp_us(std::uint32_t&) {}
    void unread(std::uint8_t&) {}
    void time(Time&) {}
    void bytes(std::span<std::byte>) {}
};

// A stored number that lags by half the sequence space would compare as newer than the current number.
TEST(WorkerTest, StoredSequenceNumbersStayNearTheCurrentOne) {
    WorkerConfig config = WorkerBench::default_config();
    config.channel.first_seq = 0x12345678U;
    WorkerBench bench(config);
    for (std::uint32_t done = 0; done < 20; ++done) {
        ASSERT_TRUE(bench.submit_fragments(10).has_value());
        for (const WorkerPacket& packet : bench.packets()) bench.handle(bench.ack(packet.header.seq));
        (void)bench.events();
    }
    FieldReader reader;
    bench.worker.persist(reader);
    for (const std::uint32_t field : reader.fields) EXPECT_GT(field - (config.channel.first_seq - 8), 16U);
}

TEST(WorkerTest, ValuesOutsideTheScaleAreSentAsUnaggregatedFloats) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const float value : {3e9F, -3e9F, infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
        WorkerBench bench;
        ASSERT_TRUE(bench.submit({1, 2, value, 4}).has_value());
        const auto packets = bench.packets();
        ASSERT_EQ(packets.size(), 2U);
        EXPECT_EQ(packets[0].header.lanes, ATP_INT32_LANES);
        EXPECT_EQ(packets[1].header.lanes, ATP_FLOAT32_LANES);
        EXPECT_TRUE(packets[1].has(ATP_FLAG_BYPASS));
        EXPECT_EQ(testing::floats_in(packets[1].bytes)[1], 4.0F);
    }
}

TEST(WorkerTest, LastLaneCarriesTheAuditWord) {
    WorkerConfig config = WorkerBench::default_config();
    config.channel.audit = true;
    WorkerBench bench(config);
    ASSERT_TRUE(bench.submit({5, 6}).has_value());
    const auto packets = bench.packets();
    ASSERT_EQ(packets.size(), 2U) << "of the two lanes of a fragment, one is the audit lane";
    EXPECT_TRUE(packets[1].has(ATP_FLAG_AUDIT));
    const auto word = static_cast<std::int32_t>(config.channel.audit_of(1, 1));
    EXPECT_EQ(lanes_in(packets[1].bytes), (testing::Lanes{6, word}));
}

TEST(WorkerTest, ResultWithAWrongAuditLaneIsDroppedAndCounted) {
    WorkerConfig config = WorkerBench::default_config();
    config.channel.audit = true;
    WorkerBench bench(config);
    ASSERT_TRUE(bench.submit({5, 6}).has_value());
    static_cast<void>(bench.packets());
    testing::Bytes ack = bench.ack(0, 7);
    std::byte* const lane = ack.data() + ack.size() - ATP_LANE_BYTES;
    const std::uint32_t word = wire::load_u32(lane);
    for (const std::uint32_t wrong :
         {0U, word - config.channel.result_audit_of(0, 2), word + config.channel.result_audit_of(0, 2)}) {
        wire::store_u32(lane, wrong);
        bench.handle(ack);
    }
    EXPECT_EQ(bench.worker.counters().audit_failures, 3U);
    EXPECT_EQ(bench.worker.counters().acks, 0U);
    wire::store_u32(lane, word);
    bench.handle(ack);
    EXPECT_EQ(bench.worker.counters().acks, 1U);
    EXPECT_EQ(bench.outputs[0][0], 7.0F);
}

TEST(WorkerTest, TransmitIntoATooSmallBufferKeepsThePacket) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit({1, 2}).has_value());
    Bytes small(bench.worker.packet_bytes() - 1);
    EXPECT_FALSE(bench.worker.poll_transmit(small, bench.now).has_value());
    EXPECT_EQ(bench.sequences(), (Sequences{0}));
}

// --- delivering

TEST(WorkerTest, SumsAreDeliveredAndTensorsReportedOnceInOrder) {
    WorkerBench bench;
    ASSERT_EQ(bench.submit({1, 2, 3}), 0U);
    ASSERT_EQ(bench.submit({4}), 1U);
    (void)bench.packets();
    bench.handle(bench.ack(2, 30));
    EXPECT_TRUE(bench.events().empty()) << "events are in order, and the first tensor is not complete";
    bench.handle(bench.ack(1, 20));
    bench.handle(bench.ack(0, 10));
    const auto events = bench.events();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].tensor, 0U);
    EXPECT_EQ(events[1].tensor, 1U);
    EXPECT_EQ(events[0].kind, WorkerEvent::Kind::completed);
    EXPECT_EQ(bench.outputs[0], (Values{10, 10, 20})) << "the ACK of the short fragment 1 stores one element";
    EXPECT_EQ(bench.outputs[1], (Values{30}));
    EXPECT_TRUE(bench.worker.idle());
    EXPECT_EQ(bench.worker.poll_timeout(), never);
}

TEST(WorkerTest, InputAndOutputMayBeTheSameMemory) {
    WorkerBench bench;
    std::vector<float> values{1, 2};
    FloatTensor tensor(values, values, 1.0F);
    ASSERT_TRUE(bench.worker.submit(tensor, bench.now).has_value());
    (void)bench.packets();
    bench.handle(bench.ack(0, 9));
    EXPECT_EQ(values, (Values{9, 9}));
}

TEST(WorkerTest, SecondAckOfAFragmentChangesNothing) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit({1, 2, 3, 4}).has_value());
    (void)bench.packets();
    bench.handle(bench.ack(1, 5));
    bench.handle(bench.ack(1, 666));
    bench.handle(bench.ack(0, 4));
    bench.handle(bench.ack(0, 666));
    EXPECT_EQ(bench.outputs[0], (Values{4, 4, 5, 5}));
    EXPECT_EQ(bench.worker.counters().acks, 2U);
    EXPECT_EQ(bench.worker.counters().stale_acks, 2U);
    EXPECT_EQ(bench.events().size(), 1U);
}

TEST(WorkerTest, AckOfAnUnsentFragmentIsIgnored) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit({1, 2}).has_value());
    bench.handle(bench.ack(0, 666));
    bench.handle(bench.ack(5, 666));
    bench.handle(bench.ack(0xffffffffU, 666));
    EXPECT_EQ(bench.worker.counters().stale_acks, 3U);
    EXPECT_EQ(bench.outputs[0], (Values{0, 0}));
    EXPECT_EQ(bench.sequences(), (Sequences{0}));
}

TEST(WorkerTest, NewIndexOfAnAckIsUsedOneWindowLater) {
    WorkerConfig config = WorkerBench::default_config();
    config.channel.window_log2 = 1;
    WorkerBench bench(config);
    ASSERT_TRUE(bench.submit_fragments(4).has_value());
    const std::uint32_t before = bench.packets().at(0).header.index;
    atp_header header = bench.answer(ATP_TYPE_ACK, ATP_DTYPE_FLOAT32, 0);
    header.argument = 999;
    bench.handle(testing::make_float_packet(header, {3, 3}));
    const auto packets = bench.packets();
    ASSERT_EQ(packets.size(), 1U);
    EXPECT_EQ(packets[0].header.seq, 2U);
    EXPECT_EQ(packets[0].header.index, 999U);
    EXPECT_NE(before, 999U);
    EXPECT_EQ(bench.worker.counters().remaps, 1U);
    EXPECT_EQ(bench.worker.index_of(1), config.channel.index(1, 0)) << "the other slot keeps its index";
}

// --- the application's interface

TEST(WorkerTest, EmptyTensorIsRefused) {
    WorkerBench bench;
    EXPECT_FALSE(bench.submit({}).has_value());
    EXPECT_TRUE(bench.worker.idle());
}

TEST(WorkerTest, TensorBeyondTheQueueIsRefused) {
    WorkerConfig config = WorkerBench::default_config();
    config.tensors = 2;
    WorkerBench bench(config);
    EXPECT_EQ(bench.submit({1, 2}), 0U);
    EXPECT_EQ(bench.submit({1, 2}), 1U);
    EXPECT_FALSE(bench.submit({1, 2}).has_value());
    (void)bench.packets();
    bench.handle(bench.ack(0));
    EXPECT_FALSE(bench.submit({1, 2}).has_value()) << "a completed tensor stays in the queue until its event is polled";
    EXPECT_EQ(bench.events().size(), 1U);
    EXPECT_EQ(bench.submit({1, 2}), 2U);
}

TEST(WorkerTest, ManyTensorsThroughAShortQueueAreDelivered) {
    WorkerConfig config = WorkerBench::default_config();
    config.tensors = 3;
    WorkerBench bench(config);
    std::uint32_t acknowledged = 0;
    std::uint64_t done = 0;
    for (int round = 0; round < 100 && done < 100; ++round) {
        while (bench.submit({1, 2, 3}).has_value()) {
        }
        for (const WorkerPacket& packet : bench.packets()) {
            bench.handle(bench.ack(packet.header.seq));
            ++acknowledged;
        }
        for (const WorkerEvent& event : bench.events()) EXPECT_EQ(event.tensor, done++);
    }
    EXPECT_GE(done, 100U);
    EXPECT_GE(acknowledged, 200U);
    EXPECT_EQ(bench.worker.counters().stale_acks, 0U);
}

// --- packets that do not belong to the job

TEST(WorkerTest, H58_AckWithoutLanesIsNoResult) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit({1, 2}));
    ASSERT_EQ(bench.packets().size(), 1U);
    bench.handle(testing::make_packet(bench.answer(ATP_TYPE_ACK, ATP_DTYPE_NONE, 0)));
    EXPECT_EQ(bench.worker.counters().refused, 1U);
    EXPECT_EQ(bench.worker.counters().acks, 0U);
    EXPECT_TRUE(bench.events().empty());
}

TEST(WorkerTest, AckWithProofWordsOfAnotherFormOrOfAPartIsRefused) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit({1, 2}));
    ASSERT_EQ(bench.packets().size(), 1U);
    atp_header header = bench.answer(ATP_TYPE_ACK, ATP_DTYPE_INT32, 0, ATP_FLAG_PROOF);
    bench.handle(testing::make_packet(header, {1, 2, 3, 4, 5, 6}));
    header = bench.answer(ATP_TYPE_ACK, ATP_DTYPE_FLOAT32, 0);
    header.lanes = atp_lanes_of(ATP_DTYPE_INT16, ATP_DTYPE_FLOAT32);
    bench.handle(testing::make_float_packet(header, {1, 2}));
    header.part = 1U << ATP_PART_PACKET_SHIFT;
    bench.handle(testing::make_float_packet(header, {1, 2}));
    atp_header nack = bench.answer(ATP_TYPE_NACK, ATP_DTYPE_INT32, 0);
    nack.part = 1U << ATP_PART_PACKET_SHIFT;
    bench.handle(testing::make_packet(nack));
    EXPECT_EQ(bench.worker.counters().refused, 4U);
    EXPECT_EQ(bench.worker.counters().acks + bench.worker.counters().nacks, 0U);
    bench.handle(bench.ack(0));
    EXPECT_EQ(bench.worker.counters().acks, 1U);
}

TEST(WorkerTest, PacketOfAnotherJobTokenOrChannelIsForged) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit({1, 2}).has_value());
    (void)bench.packets();
    for (int part = 0; part < 3; ++part) {
        Bytes ack = bench.ack(0, 666);
        const std::size_t offset = part == 0 ? ATP_OFFSET_JOB : part == 1 ? ATP_OFFSET_TOKEN : ATP_OFFSET_CHANNEL;
        ack.at(offset) ^= std::byte{0x40};
        bench.handle(ack);
    }
    EXPECT_EQ(bench.worker.counters().forged, 3U);
    EXPECT_EQ(bench.worker.expected(), 0U);
    EXPECT_EQ(bench.outputs[0], (Values{0, 0}));
}

TEST(WorkerTest, ShapeThatAServerNeverSendsIsRefused) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit({1, 2}).has_value());
    (void)bench.packets();
    bench.handle(testing::make_packet(bench.answer(ATP_TYPE_ACK, ATP_DTYPE_INT32, 0), {1, 2}));
    bench.handle(testing::make_float_packet(bench.answer(ATP_TYPE_ACK, ATP_DTYPE_FLOAT32, 0), {1}));
    bench.handle(testing::make_float_packet(bench.answer(ATP_TYPE_ACK, ATP_DTYPE_FLOAT32, 0), {1, 2, 3}));
    bench.handle(testing::make_packet(bench.answer(ATP_TYPE_GRADIENT, ATP_DTYPE_INT32, 0), {1, 2}));
    bench.handle(testing::make_packet(bench.answer(ATP_TYPE_PROBE, ATP_DTYPE_NONE, 0)));
    EXPECT_EQ(bench.worker.counters().refused, 5U);
    EXPECT_EQ(bench.worker.expected(), 0U);
}

TEST(WorkerTest, FlushIsIgnored) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit({1, 2}).has_value());
    (void)bench.packets();
    bench.handle(testing::make_packet(bench.answer(ATP_TYPE_FLUSH, ATP_DTYPE_NONE, 0)));
    EXPECT_EQ(bench.worker.counters().refused, 0U);
    EXPECT_TRUE(bench.packets().empty());
}

TEST(WorkerTest, RandomAndTruncatedBytesAreCountedAndDropped) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit({1, 2}).has_value());
    (void)bench.packets();
    Random random(5);
    const Bytes good = bench.ack(0, 666);
    for (std::size_t size = 0; size < good.size(); ++size) {
        bench.handle(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
    }
    for (int i = 0; i < 10'000; ++i) {
        Bytes bytes(random.below(100));
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.bits());
        bench.handle(bytes);
    }
    EXPECT_EQ(bench.worker.counters().refused + bench.worker.counters().forged, good.size() + 10'000);
    EXPECT_EQ(bench.worker.expected(), 0U);
    EXPECT_TRUE(bench.packets().empty());
}

// Random answers with the right job and token never make the worker send beyond its window.
TEST(WorkerTest, RandomAnswersKeepTheWorkerWithinItsWindow) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit_fragments(1000).has_value());
    Random random(6);
    for (int i = 0; i < 50'000; ++i) {
        const std::uint32_t seq = bench.worker.expected() + random.below(24) - 4;
        atp_header header = bench.answer(static_cast<atp_type>(1 + random.below(6)),
                                         static_cast<atp_dtype>(random.below(3)), seq, random.bits() & ATP_FLAG_ALL);
        header.argument = random.bits();
        header.bitmap0 = random.below(8);
        bench.handle(testing::make_packet(header, testing::Lanes(random.chance(0.5) ? 2 : 0)), random.chance(0.1));
        bench.now += std::chrono::microseconds(random.below(2000));
        if (random.chance(0.1)) bench.worker.handle_timeout(bench.now);
        const std::size_t sent = bench.packets().size();
        ASSERT_LE(sent, 16U + 16U + 8U) << "at most a window of gradients, a window of resends and eight PROBEs";
        ASSERT_LE(bench.worker.next_seq() - bench.worker.expected(), 16U);
        (void)bench.events();
    }
    EXPECT_GT(bench.worker.expected(), 100U);
}

}  // namespace
}  // namespace atp::protocol
