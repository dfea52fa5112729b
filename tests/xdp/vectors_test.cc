// SPDX-License-Identifier: Apache-2.0
// Checks the kernel program against every row of the committed vectors of decisions and of packets.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "decide_rows.h"
#include "frames.h"
#include "loaded_switch.h"
#include "vector_file.h"
#include "wire/packet.h"

namespace atp::test {
namespace {

using conformance::DecideLanes;
using conformance::DecideRow;

std::string fate_name(xdp::Disposition disposition) {
    switch (disposition) {
        case xdp::Disposition::dropped: return "drop";
        case xdp::Disposition::passed: return "forward";
        case xdp::Disposition::sent_back: return "return";
        default: return "failed";
    }
}

xdp::KernelTableConfig config_of(const conformance::DecideVector& given) {
    return {.aggregators = 16, .jobs = 2, .ageing = std::chrono::microseconds(given.ageing_us), .clock_is_fixed = true};
}

void put(xdp::KernelTable& machine, std::uint32_t index, const atp_aggregator& state, const DecideLanes& held) {
    atp_xdp_aggregator aggregator{};
    aggregator.state = state;
    for (std::size_t lane = 0; lane < held.size(); ++lane) xdp::set_lane(aggregator, lane, held[lane]);
    ASSERT_TRUE(machine.write(index, aggregator));
}

void expect_aggregator(const xdp::KernelTable& machine, std::uint32_t index, const conformance::DecideState& after) {
    atp_xdp_aggregator aggregator{};
    ASSERT_TRUE(machine.read(index, aggregator));
    EXPECT_EQ(conformance::to_json(aggregator.state), conformance::to_json(after.aggregator));
    for (std::size_t lane = 0; lane < after.held.size(); ++lane) {
        EXPECT_EQ(xdp::lane_of(aggregator, lane), after.held[lane]) << lane;
    }
}

bool is_packet(Bytes payload) {
    wire::Packet packet;
    return wire::decode(payload, packet) == wire::DecodeError::none;
}

class DecideVectorsInTheKernel : public LoadedSwitch {
  protected:
    // Concatenates the names of the events counted since `before`. A correct program counts one event per packet.
    std::string counted_since(const xdp::KernelCounters& before) const {
        const xdp::KernelCounters now = machine->counters();
        std::string events;
        for (std::size_t event = 0; event < ATP_EVENT_COUNT; ++event) {
            for (auto n = before.packets.events[event]; n < now.packets.events[event]; ++n) {
                events += conformance::event_name(static_cast<unsigned>(event));
            }
        }
        return events;
    }

    void answer(const DecideRow& row, const Wrapping& wrapping) {
        const atp_header& packet = row.given.before.packet;
        ASSERT_TRUE(machine->admit(packet.job, packet.token, conformance::level_of(row.given)));
        put(*machine, packet.index, row.given.before.aggregator, row.given.before.held);
        machine->set_now_us(row.given.now_us);
        const xdp::KernelCounters before = machine->counters();
        const Bytes frame = wrap(conformance::bytes_of(packet, row.given.before.lanes), wrapping);
        const auto outcome = machine->run(frame);
        ASSERT_TRUE(outcome) << to_string(outcome.error());

        if (!is_packet(unwrap(frame).payload)) {  // invalid: an addressed switch drops it; the kernel program passes it
                                                  // on, and the receiver refuses it
            EXPECT_EQ(outcome->disposition, xdp::Disposition::passed);
            EXPECT_EQ(outcome->frame, frame);
            expect_aggregator(*machine, packet.index, row.given.before);
            machine->dismiss({packet.job, packet.token});
            return;
        }
        // A packet that has already passed the level of the switch is forwarded without a decision.
        const bool behind = packet.hop >= ATP_LEVELS;
        EXPECT_EQ(counted_since(before), behind ? conformance::event_name(ATP_EVENT_PASSED) : row.event);
        EXPECT_EQ(fate_name(outcome->disposition), row.packet_action);
        expect_aggregator(*machine, packet.index, row.after);
        if (outcome->disposition != xdp::Disposition::dropped) expect_frame(row, frame, outcome->frame);
        machine->dismiss({packet.job, packet.token});
    }

    static void expect_frame(const DecideRow& row, const Bytes& sent, const Bytes& left) {
        const Unwrapped before = unwrap(sent);
        const Unwrapped after = unwrap(left);
        EXPECT_EQ(after.payload, conformance::bytes_of(row.after.packet, row.after.lanes));
        const bool returned = row.packet_action == "return";
        // No network card completes the checksum of a frame that XDP_TX returns, so the program must write the whole
        // checksum.
        const bool completed = returned && before.checksum == Checksum::partial;
        EXPECT_EQ(after.checksum, completed ? Checksum::full : before.checksum);
        EXPECT_TRUE(after.network_checksum_holds);
        EXPECT_EQ(after.source, returned ? before.destination : before.source);
        EXPECT_EQ(after.destination, returned ? before.source : before.destination);
        EXPECT_EQ(after.source_port, returned ? before.destination_port : before.source_port);
        EXPECT_EQ(after.destination_port, returned ? before.source_port : before.destination_port);
    }

    void answer_all(const Wrapping& wrapping) {
        const std::vector<DecideRow> rows = conformance::committed_rows();
        ASSERT_FALSE(rows.empty());
        load(config_of(rows.front().given));
        if (machine == nullptr) return;
        for (const DecideRow& row : rows) {
            SCOPED_TRACE(row.given.description);
            ASSERT_EQ(row.given.ageing_us, rows.front().given.ageing_us)
                << "all rows must have the ageing time with which the program was loaded";
            answer(row, wrapping);
        }
    }
};

TEST_F(DecideVectorsInTheKernel, AreAnsweredOverIpv4) { answer_all({}); }

TEST_F(DecideVectorsInTheKernel, AreAnsweredOverIpv6) { answer_all({.ip = 6}); }

TEST_F(DecideVectorsInTheKernel, AreAnsweredWithVlanTagsAndIpv4Options) {
    answer_all({.vlan_tags = 2, .ipv4_option_words = 10});
}

TEST_F(DecideVectorsInTheKernel, AreAnsweredWithoutAChecksum) { answer_all({.checksum = Checksum::none}); }

TEST_F(DecideVectorsInTheKernel, AreAnsweredWithAChecksumLeftToTheNetworkCard) {
    answer_all({.checksum = Checksum::partial});
}

class WireVectorsInTheKernel : public LoadedSwitch {};

TEST_F(WireVectorsInTheKernel, AreRefusedForTheReasonInTheFileAndPassUntouched) {
    load({.aggregators = 16, .jobs = 2});
    if (machine == nullptr) return;
    for (const auto& vector : nlohmann::json::parse(conformance::committed_text("wire.json"))) {
        const auto description = vector.at("description").get<std::string>();
        SCOPED_TRACE(description);
        const Bytes payload = conformance::bytes_of(vector.at("hex").get<std::string>(),
                                                    vector.at("zero_bytes_after_hex").get<std::size_t>());
        if (payload.size() > 1472) continue;  // too long for a frame
        const xdp::KernelCounters before = machine->counters();
        const Bytes frame = wrap(payload, {});
        const auto outcome = machine->run(frame);
        ASSERT_TRUE(outcome) << to_string(outcome.error());
        EXPECT_EQ(outcome->disposition, xdp::Disposition::passed);
        EXPECT_EQ(outcome->frame, frame);

        const xdp::KernelCounters after = machine->counters();
        const std::string reason = vector.value("error", "none");
        std::uint64_t refused = 0;
        for (std::size_t i = 0; i < after.packets.refused.size(); ++i) {
            const std::uint64_t now = after.packets.refused[i] - before.packets.refused[i];
            refused += now;
            EXPECT_EQ(now, reason == wire::to_string(static_cast<wire::DecodeError>(i)) && reason != "none" ? 1U : 0U);
        }
        EXPECT_EQ(refused + after.packets.forged - before.packets.forged, 1U)
            << "no job was admitted, so a valid packet counts as forged";
    }
}

}  // namespace
}  // namespace atp::test
