// SPDX-License-Identifier: Apache-2.0
#include "check/pipeline_switch.h"

#include <algorithm>
#include <bit>

#include "check/model_time.h"
#include "protocol/breaks.h"

#define ATP_PIPELINE_BREAK(name) ATP_BREAK(name)
#include "pipeline/decide_pipeline.h"

namespace atp::check::ATP_VARIANT {
namespace {

// In front of a packet between two passes: a version that no packet has, the kind of the next pass, and `seen`.
constexpr auto pass_mark = std::byte{0xFF};
constexpr std::uint32_t pass_bytes = 6;

constexpr std::uint32_t place_of_level1 = 1;
constexpr std::uint32_t first_place_of_units = 2;

std::uint32_t microseconds(Time now) { return static_cast<std::uint32_t>(now.time_since_epoch().count() / 1000); }

bool is_between_passes(const Sent& packet) { return packet.bytes[0] == pass_mark; }

void put_in_front(Sent& packet, const atp_pipeline_outcome& outcome) {
    const auto end = packet.bytes.begin() + packet.size;
    std::copy_backward(packet.bytes.begin(), end, end + pass_bytes);
    packet.bytes[0] = pass_mark;
    wire::store_u8(packet.bytes.data() + 1, outcome.next);
    wire::store_u32(packet.bytes.data() + 2, outcome.seen);
    packet.size += pass_bytes;
}

void take_from_front(Sent& packet, atp_pass& pass) {
    pass.kind = wire::load_u8(packet.bytes.data() + 1);
    pass.seen = wire::load_u32(packet.bytes.data() + 2);
    std::copy(packet.bytes.begin() + pass_bytes, packet.bytes.begin() + packet.size, packet.bytes.begin());
    packet.size -= pass_bytes;
}

bool accesses_once(const atp_pass& pass) {
    for (unsigned cell = 0; cell < ATP_CELL_COUNT; ++cell) {
        if ((pass.accesses >> (4U * cell) & 0xFU) > 1) return false;
    }
    return true;
}

}  // namespace

std::span<const std::byte> packet_between_passes(std::span<const std::byte> bytes, std::uint8_t& kind) {
    kind = ATP_PASS_FIRST;
    if (bytes.front() != pass_mark) return bytes;
    kind = wire::load_u8(bytes.data() + 1);
    return bytes.subspan(pass_bytes);
}

PipelineSwitch::PipelineSwitch(const Configuration& configuration, const protocol::Membership& membership,
                               std::uint8_t level)
    : configuration_(configuration), membership_(membership), level_(level), table_(configuration.aggregators) {
    clear();
}

void PipelineSwitch::clear() {
    std::ranges::fill(table_, Aggregator{});
    for (Aggregator& at : table_) at.words.tag = ATP_TAG_FREE;
}

// What the agent of the pipeline would write into its tables.
atp_pipeline_place PipelineSwitch::place_of(const atp_header& header) const {
    const unsigned job = header.job - job_number(0);
    if (job >= configuration_.jobs || header.token != job_token(job, false)) return {};
    atp_pipeline_place found{.stream = 1 + job, .place = 0, .mask = 0};
    if (header.hop != level_) return found;
    if (level_ == 1) {
        found.place = place_of_level1;
        found.mask = membership_.all_units();
    } else if (std::has_single_bit(header.bitmap1)) {
        const auto unit = static_cast<unsigned>(std::countr_zero(header.bitmap1));
        found.place = first_place_of_units + unit;
        found.mask = membership_.unit_mask(unit);
    }
    return found;
}

PipelinePass PipelineSwitch::handle(Sent& packet, Input input) {
    PipelinePass result;
    atp_pass pass{};
    if (is_between_passes(packet)) take_from_front(packet, pass);
    wire::Packet decoded;
    if (wire::decode(std::span(packet.bytes).first(packet.size), decoded) != wire::DecodeError::none) {
        result.violation = "a packet at a pipeline cannot be decoded";
        return result;
    }
    atp_header& header = decoded.header;
    const bool first = pass.kind == ATP_PASS_FIRST;
    if (first && input == Input::packet_marked && header.type == ATP_TYPE_GRADIENT) header.flags |= ATP_FLAG_ECN;
    wire::encode_header(header, packet.bytes);
    const Sent arrived = packet;
    Aggregator& at = table_[header.index];
    result.header = header;
    result.before = at.words;
    result.kind = pass.kind;
    pass.place = place_of(header);
    pass.full_lanes = model_lanes;
    pass.now_us = microseconds(time_of(input));
    pass.ageing_us = static_cast<std::uint32_t>(model_ageing.count() / 1000);
    const auto lanes = static_cast<std::uint32_t>(decoded.lane_count());
    const atp_pipeline_outcome outcome = atp_pipeline_pass(&header, lanes, &pass, &at.words);
    if (!accesses_once(pass)) result.violation = "a packet accessed a register twice in one pass";
    if (outcome.lanes != ATP_PAIRS_NONE) {
        packet.size = model_packet_bytes;  // a FLUSH grows
        move_lanes(outcome.lanes, std::span(packet.bytes).subspan(ATP_HEADER_BYTES), at);
    }
    wire::encode_header(header, packet.bytes);
    result.event = result.verdict.event = outcome.event;
    result.passes_again = outcome.packet >= ATP_PIPELINE_RESUBMIT;
    result.verdict.job = header.job;
    if (outcome.packet == ATP_PIPELINE_RESUBMIT) packet = arrived;
    if (result.passes_again) {
        put_in_front(packet, outcome);
    } else if (outcome.packet != ATP_PACKET_DROP) {
        result.verdict.route = wire::goes_up(header.type) ? protocol::Route::up : protocol::Route::down;
    }
    return result;
}

void PipelineSwitch::move_lanes(std::uint8_t action, std::span<std::byte> lanes, Aggregator& at) const {
    for (std::size_t lane = 0; lane < model_lanes; ++lane) {
        std::byte* word = lanes.data() + lane * ATP_LANE_BYTES;
        const bool upper = lane % 2 == 0;
        if (action == ATP_PAIRS_STORE) at.lanes[lane] = wire::load_u32(word);
        if (action == ATP_PAIRS_ADD || action == ATP_PAIRS_ADD_EMIT_UPPER) at.lanes[lane] += wire::load_u32(word);
        const bool emits = upper ? action == ATP_PAIRS_ADD_EMIT_UPPER || action == ATP_PAIRS_EMIT_UPPER
                                 : action == ATP_PAIRS_EMIT_LOWER;
        if (emits) wire::store_u32(word, at.lanes[lane]);
    }
}

bool PipelineSwitch::untouched() const {
    return std::ranges::all_of(table_, [](const Aggregator& at) {
        return at.words.tag == ATP_TAG_FREE && at.words.tomb == 0 && at.words.body == 0;
    });
}

std::uint8_t PipelineSwitch::held() const {
    return static_cast<std::uint8_t>(
        std::ranges::count_if(table_, [](const Aggregator& at) { return (at.words.tag & ATP_TAG_FREE) == 0; }));
}

std::optional<FragmentPlace> PipelineSwitch::fragment_of(const atp_pipeline_words& words) const {
    if ((words.tag & (ATP_TAG_FREE | ATP_TAG_LEAVING)) != 0) return std::nullopt;
    const std::uint32_t high = words.body >> ATP_BODY_SEQ_SHIFT & 0x1FFU;
    const std::uint32_t seq = high << ATP_TAG_STREAM_SHIFT | (words.tag & ATP_TAG_SEQ_MASK);
    return FragmentPlace{.job = static_cast<std::uint8_t>((words.tag >> ATP_TAG_STREAM_SHIFT) - 1),
                         .offset = static_cast<std::int8_t>(seq - configuration_.first_seq)};
}

bool PipelineSwitch::all_reclaimable() const {
    return std::ranges::all_of(table_, [this](const Aggregator& at) {
        if ((at.words.tag & ATP_TAG_FREE) != 0) return true;
        const std::uint32_t seq = at.words.tag & ATP_TAG_SEQ_MASK;
        if (event_of_claim(at, seq - 1, after_ageing + 2 * model_ageing) != ATP_EVENT_TAKEN_OVER) return false;
        if ((at.words.tag & ATP_TAG_LEAVING) != 0) return true;
        return event_of_claim(at, seq + configuration_.window(), model_now) == ATP_EVENT_SUPERSEDED;
    });
}

// Event of a gradient that no other packet overtakes between its passes. `at` is a copy, without tombstone.
std::uint8_t PipelineSwitch::event_of_claim(Aggregator at, std::uint32_t seq, Time now) const {
    const std::uint32_t stream = (at.words.tag & ~ATP_TAG_LEAVING) >> ATP_TAG_STREAM_SHIFT;
    at.words.tomb = 0;
    at.words.touched_us = microseconds(model_now);
    atp_header header{};
    header.type = ATP_TYPE_GRADIENT;
    header.lanes = ATP_INT32_LANES;
    header.window_log2 = configuration_.window_log2;
    header.seq = seq;
    header.bitmap0 = header.bitmap1 = header.mask1 = 1;
    header.mask0 = 3;
    atp_pass pass{};
    pass.place = {.stream = stream, .place = first_place_of_units, .mask = header.mask0};
    pass.full_lanes = model_lanes;
    pass.now_us = microseconds(now);
    pass.ageing_us = static_cast<std::uint32_t>(model_ageing.count() / 1000);
    const atp_pipeline_outcome first = atp_pipeline_pass(&header, model_lanes, &pass, &at.words);
    if (first.packet != ATP_PIPELINE_RESUBMIT) return first.event;
    pass.kind = first.next;
    pass.seen = first.seen;
    return atp_pipeline_pass(&header, model_lanes, &pass, &at.words).event;
}

}  // namespace atp::check::ATP_VARIANT
