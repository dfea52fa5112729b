// SPDX-License-Identifier: Apache-2.0
// Which aggregators a job reaches in the kernel on a table that tenants share: the committed slice.json, and what only
// a table has that other processors write at the same time.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "decide_rows.h"
#include "job_in_the_kernel.h"
#include "processors.h"
#include "vector_file.h"

namespace atp::test {
namespace {

using nlohmann::json;

constexpr std::uint32_t aggregators = 16;
constexpr std::uint8_t window_log2 = 2;
constexpr std::uint32_t window = 1U << window_log2;
constexpr control::JobKey mine{job, token};
constexpr control::JobKey other{job + 1, token};

class SlicesInTheKernel : public SwitchInTheKernel {
  protected:
    [[nodiscard]] static atp_header packet_of(const control::JobKey& of, unsigned member, std::uint32_t seq,
                                              std::uint32_t index) {
        atp_header header = gradient(member, seq);
        header.job = of.job;
        header.index = index;
        header.window_log2 = window_log2;
        header.mask0 = 3;
        return header;
    }
    // Sends the gradient of one of two members, and frees its aggregator again.
    std::optional<std::uint32_t> place_of(const atp_header& header) {
        send(header, {1, 2, 3});
        std::optional<std::uint32_t> found;
        for (std::uint32_t place = 0; place < aggregators; ++place) {
            atp_xdp_aggregator aggregator{};
            EXPECT_TRUE(machine->read(place, aggregator));
            if (aggregator.state.status == ATP_AGGREGATOR_FREE) continue;
            found = place;
            EXPECT_TRUE(machine->write(place, {}));
        }
        return found;
    }
};

atp_range range_of(const json& pair) { return {pair.at(0).get<std::uint32_t>(), pair.at(1).get<std::uint32_t>()}; }

TEST_F(SlicesInTheKernel, FindTheAggregatorsOfTheFile) {
    if (machine == nullptr) return;
    for (const json& row : json::parse(conformance::committed_text("slice.json"))) {
        if (!row.contains("steps")) continue;
        SCOPED_TRACE(row.at("description").get<std::string>());
        ASSERT_EQ(row.at("aggregators"), aggregators);
        ASSERT_EQ(row.at("window_log2"), window_log2);
        machine->dismiss(mine);
        ASSERT_TRUE(machine->admit(job, token, 0));
        for (const json& step : row.at("steps")) {
            if (step.contains("slice")) {
                machine->set_slice(mine, range_of(step.at("slice")), 1, 0);
            } else if (step.contains("end")) {
                machine->end_changes();
            } else {
                atp_header header =
                    packet_of(mine, 0, step.at("seq").get<std::uint32_t>(), step.at("index").get<std::uint32_t>());
                header.channel = step.at("channel").get<std::uint16_t>();
                const auto place = place_of(header);
                EXPECT_EQ(place ? json(*place) : json(nullptr), step.at("place")) << step.dump();
            }
        }
    }
}

TEST_F(SlicesInTheKernel, H104_ChangeBeginsThreeWindowsLaterBecausePacketsPassMeanwhile) {
    if (machine == nullptr) return;
    machine->set_slice(mine, {0, 8}, 1);
    EXPECT_EQ(place_of(packet_of(mine, 0, 5, 1)), 1U);
    machine->set_slice(mine, {8, 4}, 1);
    const std::uint32_t from = 5 + window + 3 * window;
    EXPECT_EQ(place_of(packet_of(mine, 0, from - 1, 1)), 1U);
    EXPECT_EQ(place_of(packet_of(mine, 0, from, 1)), 9U);
    machine->end_changes();
    EXPECT_EQ(place_of(packet_of(mine, 0, from - 1, 1)), 9U);
}

// Its number may be that of any fragment, however late.
TEST_F(SlicesInTheKernel, H104_DamagedResultDoesNotShowHowFarAStreamIs) {
    if (machine == nullptr) return;
    machine->set_slice(mine, {0, 8}, 1);
    EXPECT_EQ(place_of(packet_of(mine, 0, 5, 1)), 1U);
    atp_header late = packet_of(mine, 0, 5000, 1);
    for (const atp_type type : {ATP_TYPE_ACK, ATP_TYPE_NACK, ATP_TYPE_FLUSH}) {
        late.type = static_cast<std::uint8_t>(type);
        late.lanes = type == ATP_TYPE_NACK ? ATP_DTYPE_INT32 : ATP_DTYPE_NONE;
        late.hop = type == ATP_TYPE_FLUSH ? 1 : 0;  // of the level above
        expect_untouched(wrap(conformance::bytes_of(late, {}), {.checksum = Checksum::wrong}));
    }
    EXPECT_EQ(machine->counters().damaged, 3U);
    machine->set_slice(mine, {8, 4}, 1);
    EXPECT_EQ(place_of(packet_of(mine, 0, 5 + 4 * window, 1)), 9U);
    machine->end_changes();
    late.type = ATP_TYPE_ACK;
    late.lanes = ATP_DTYPE_NONE;
    late.hop = 0;
    expect_untouched(wrap(conformance::bytes_of(late, {}), {}));
    machine->set_slice(mine, {0, 8}, 1);
    EXPECT_EQ(place_of(packet_of(mine, 0, 5 + 4 * window, 1)), 9U) << "an undamaged one does";
}

// A change is written while a packet of the other processor may be in the program.
TEST_F(SlicesInTheKernel, H104_FragmentsOfTwoProcessorsCompleteWhileSlicesChange) {
    if (machine == nullptr) return;
    constexpr std::uint32_t fragments = 6'000;
    constexpr std::uint32_t between = 250;  // fragments; more than the four windows after which a change applies
    std::atomic<std::uint32_t> completed = 0;
    Meeting meeting(2);
    machine->set_slice(mine, {0, 8}, 1);
    const auto change = [&](std::uint32_t seq) {
        if (seq % between != 0) return;
        if (seq / between % 2 == 0) return machine->end_changes();
        machine->set_slice(mine, {seq / between % 4 == 1 ? 8U : 0U, 8}, 1);
    };
    const auto work = [&](unsigned member) {
        take_processor(member);
        for (std::uint32_t seq = 1; seq <= fragments; ++seq) {
            atp_header header = packet_of(mine, member, seq, seq % aggregators);
            const Bytes frame = wrap(conformance::bytes_of(header, {1, 2, 3}), {});
            header.type = ATP_TYPE_ACK;
            const Bytes result = wrap(conformance::bytes_of(header, {2, 4, 6}), {});
            meeting.wait();
            if (member == 1) change(seq);
            const auto outcome = machine->run(frame);
            if (outcome && outcome->disposition == xdp::Disposition::passed) ++completed;
            meeting.wait();
            if (member == 0) static_cast<void>(machine->run(result));
        }
    };
    std::thread one(work, 0);
    std::thread two(work, 1);
    one.join();
    two.join();
    EXPECT_EQ(completed, fragments);
    EXPECT_EQ(machine->counters().packets.events[ATP_EVENT_COMPLETED], fragments);
    EXPECT_EQ(machine->counters().packets.events[ATP_EVENT_RELEASED], fragments);
}

TEST_F(SlicesInTheKernel, H103_TenantThatClaimsEveryIndexTakesNothingFromAnother) {
    if (machine == nullptr) return;
    ASSERT_TRUE(machine->admit(other.job, other.token, 0));
    machine->set_slice(mine, {0, 12}, 3);
    machine->set_slice(other, {12, 4}, 1);
    for (std::uint32_t index = 0; index < aggregators; ++index) send(packet_of(other, 0, index, index), {1, 2, 3});
    EXPECT_EQ(machine->occupied(), 4U);
    for (std::uint32_t index = 0; index < 12; ++index) {
        EXPECT_EQ(send(packet_of(mine, 0, index, index), {1, 2, 3}).disposition, xdp::Disposition::dropped);
        EXPECT_EQ(send(packet_of(mine, 1, index, index), {1, 2, 3}).disposition, xdp::Disposition::passed);
    }
    EXPECT_EQ(machine->job_counters(mine)->packets.events[ATP_EVENT_COMPLETED], 12U);
    EXPECT_EQ(machine->job_counters(mine)->packets.events[ATP_EVENT_COLLIDED], 0U);
}

TEST_F(SlicesInTheKernel, FlushAndResultsReachTheSliceOfTheirJob) {
    if (machine == nullptr) return;
    machine->set_slice(mine, {8, 4}, 1);
    send(packet_of(mine, 0, 1, 2), {1, 2, 3});
    atp_header asking = packet_of(mine, 0, 1, 2);
    asking.type = ATP_TYPE_FLUSH;
    asking.lanes = ATP_DTYPE_NONE;
    EXPECT_EQ(send(asking, {}).disposition, xdp::Disposition::sent_back);
    send(packet_of(mine, 0, 2, 6), {1, 2, 3});  // 6 mod 4 is 2
    EXPECT_EQ(machine->occupied(), 1U);
    atp_header result = packet_of(mine, 0, 2, 6);
    result.type = ATP_TYPE_ACK;
    const Wrapping leaving{.source = 4790, .destination = 50'000};
    expect_to_leave_untouched(wrap(conformance::bytes_of(result, {1, 2, 3}), leaving));
    EXPECT_EQ(machine->occupied(), 0U);
    EXPECT_EQ(machine->counters().packets.events[ATP_EVENT_RELEASED], 1U);
}

TEST_F(SlicesInTheKernel, EmptySlicePassesEachGradientByItself) {
    if (machine == nullptr) return;
    machine->set_slice(mine, {5, 0}, 1);
    EXPECT_EQ(send(packet_of(mine, 0, 0, 0), {1, 2, 3}).disposition, xdp::Disposition::passed);
    EXPECT_EQ(machine->counters().packets.events[ATP_EVENT_MISFIT], 1U);
    EXPECT_EQ(machine->occupied(), 0U);
}

TEST_F(SlicesInTheKernel, NextJobInASlotHasTheWholeTable) {
    if (machine == nullptr) return;
    machine->set_slice(mine, {8, 4}, 1);
    EXPECT_EQ(machine->slice_of(mine)->base, 8U);
    machine->dismiss(mine);
    ASSERT_TRUE(machine->admit(other.job, other.token, 0));
    EXPECT_FALSE(machine->slice_of(other));
    EXPECT_EQ(place_of(packet_of(other, 0, 1, 15)), 15U);
}

TEST_F(SlicesInTheKernel, SurviveARestartWithTheKeysOfTheirTenants) {
    if (machine == nullptr) return;
    const PinFolder folder;
    if (!folder.mounted()) GTEST_SKIP() << "this machine does not permit to mount a bpffs";
    const xdp::KernelTableConfig config{.aggregators = aggregators, .jobs = 2, .pins = folder.path()};
    load(config);
    ASSERT_TRUE(machine->admit(job, token, 0, 0));
    machine->set_key(mine, 77);
    machine->set_slice(mine, {8, 4}, 1);
    machine.reset();
    load(config);
    ASSERT_EQ(machine->jobs().size(), 1U);
    EXPECT_EQ(machine->jobs().front().key_id, 77U);
    ASSERT_TRUE(machine->slice_of(mine));
    EXPECT_EQ(machine->slice_of(mine)->size, 4U);
    EXPECT_EQ(place_of(packet_of(mine, 0, 1, 7)), 11U);
    machine->unpin();
}

}  // namespace
}  // namespace atp::test
