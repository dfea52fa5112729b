// SPDX-License-Identifier: Apache-2.0
#include "messages.h"

#include <gtest/gtest.h>

#include "fabric.h"
#include "wire/packet.h"

namespace atp::test {
namespace {

Bytes packet(const Target& target, std::uint8_t type, std::uint8_t lanes, std::size_t words,
             std::uint32_t argument = 0) {
    const bool up = wire::goes_up(type);
    const atp_header header{.version = ATP_VERSION,
                            .type = type,
                            .flags = 0,
                            .hop = static_cast<std::uint8_t>(type == ATP_TYPE_FLUSH ? 0 : 2 * (up ? 0 : 1)),
                            .lanes = lanes,
                            .window_log2 = 4,
                            .scale = 0,
                            .job = target.job,
                            .channel = 0,
                            .worker = static_cast<std::uint16_t>(up ? 0 : ATP_WORKER_ALL),
                            .token = target.token,
                            .seq = target.seq,
                            .index = 0,
                            .argument = argument,
                            .peer = ATP_WORKER_ALL,
                            .sending = 0,
                            .part = 0,
                            .bitmap0 = up ? 1U : 3U,
                            .mask0 = 3,
                            .bitmap1 = 1,
                            .mask1 = 1};
    Bytes bytes(ATP_HEADER_BYTES + words * ATP_LANE_BYTES, std::byte{0x55});
    wire::encode_header(header, bytes);
    wire::Packet read;
    EXPECT_EQ(wire::decode(bytes, read), wire::DecodeError::none) << wire::type_to_string(type);
    return bytes;
}

}  // namespace

wire::Join join_of(const Target& target) {
    wire::Join join;
    join.nonce = target.nonce;
    join.epoch = target.epoch;
    join.terms.job = target.job, join.terms.token = target.token;
    join.terms.lanes = small_lanes, join.terms.window_log2 = 4, join.terms.aggregators = 16;
    join.terms.mask1 = 1, join.terms.scale = 1e8;
    join.units = {{.unit = 0, .members = 1, .mask0 = 3, .direct = false, .ranks = {0}}};
    return join;
}

std::vector<Forgery> control_forgeries(const Target& target) {
    const auto [job, token, nonce, epoch, seq] = target;
    const wire::Edge edge{.kind = wire::EdgeKind::member, .evidence = wire::Evidence::left, .member = 1};
    wire::Joined failed{.nonce = nonce, .job = job, .token = token, .epoch = epoch, .number = 0xFFFFFFF0};
    failed.missing_units = 1, failed.missing_members = 2, failed.edges = {edge};
    wire::Joined ready = failed;
    ready.ready = true, ready.missing_units = ready.missing_members = 0, ready.edges = {}, ready.hold_ms = 100;
    wire::Leave leave{.nonce = nonce, .job = job, .token = token, .epoch = epoch + 1000};
    leave.edges = {edge};
    std::vector<Forgery> all{
        {"JOIN", bytes_of(wire::JoiningMessage(join_of(target)))},
        {"JOINED", bytes_of(failed)},
        {"JOINED, ready", bytes_of(ready)},
        {"LEAVE", bytes_of(leave)},
        {"HELLO", bytes_of(wire::Hello{.nonce = nonce})},
        {"WELCOME", bytes_of(wire::Welcome{.nonce = nonce, .path = {{.id = 1, .aggregators = 16, .lanes = 8}}})},
        {"STATS", bytes_of(wire::Stats{.nonce = nonce})},
        {"REPORT", bytes_of(wire::Report{.nonce = nonce, .snapshot = 1, .part = 0, .parts = 1, .text = "{}"})},
        {"RETRY",
         bytes_of(wire::Retry{.nonce = nonce, .job = job, .token = token, .cookie = 77, .boot = 5, .name = "leaf-1"})},
        {"RETRY of an open switch", bytes_of(wire::Retry{.nonce = nonce, .job = job, .token = token, .cookie = 78})}};
    for (const wire::Refusal reason :
         {wire::Refusal::version, wire::Refusal::full, wire::Refusal::terms, wire::Refusal::place,
          wire::Refusal::restarted, wire::Refusal::parent, wire::Refusal::unsupported, wire::Refusal::key}) {
        all.push_back(
            {"REFUSED " + std::to_string(static_cast<int>(reason)),
             bytes_of(wire::Refused{.nonce = nonce, .job = job, .token = token, .reason = reason, .text = "forged"})});
    }
    return all;
}

std::vector<Forgery> packet_forgeries(const Target& target, bool lanes) {
    std::vector<Forgery> all{{"NACK", packet(target, ATP_TYPE_NACK, ATP_DTYPE_INT32, 0)},
                             {"PROBE", packet(target, ATP_TYPE_PROBE, 0, 0)},
                             {"WAIT", packet(target, ATP_TYPE_WAIT, 0, 0)},
                             {"WAIT 1", packet(target, ATP_TYPE_WAIT, 0, 0, 1)},
                             {"FLUSH", packet(target, ATP_TYPE_FLUSH, 0, 0)},
                             {"READY", packet(target, ATP_TYPE_READY, 0, 0, target.seq + 16)},
                             {"ACK without lanes", packet(target, ATP_TYPE_ACK, 0, 0)},
                             {"ACK_LIST", packet(target, ATP_TYPE_ACK_LIST, 0, ATP_LISTED_ACK_LANES)},
                             {"ACK of another length", packet(target, ATP_TYPE_ACK, ATP_FLOAT32_LANES, 7)}};
    if (!lanes) return all;
    all.push_back({"GRADIENT", packet(target, ATP_TYPE_GRADIENT, ATP_INT32_LANES, small_lanes)});
    all.push_back({"ACK", packet(target, ATP_TYPE_ACK, ATP_FLOAT32_LANES, small_lanes)});
    return all;
}

}  // namespace atp::test
