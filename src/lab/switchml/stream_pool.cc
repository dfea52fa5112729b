// SPDX-License-Identifier: Apache-2.0
#include "switchml/stream_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "switchml/packet.h"

namespace atp::switchml {

using switchml::Event;
using switchml::JobConfig;
using switchml::Mode;

namespace {

using Json = nlohmann::ordered_json;

Mode mode_of(wire::ChannelProtocol protocol) {
    switch (protocol) {
        case wire::ChannelProtocol::switchml_faithful: return Mode::faithful;
        case wire::ChannelProtocol::switchml_lossless: return Mode::lossless;
        default: return Mode::compares_offsets;
    }
}

Json json_of(const SwitchCounters& counters) {
    return {{"gathered", counters.count(Event::gathered)},
            {"completed", counters.count(Event::completed)},
            {"duplicates", counters.count(Event::duplicate)},
            {"answered", counters.count(Event::answered)},
            {"late", counters.count(Event::late)},
            {"ahead", counters.count(Event::ahead)},
            {"misfits", counters.count(Event::misfit)},
            {"overflows", counters.overflows}};
}

// By reason; reasons that never occurred are left out.
Json refused_json(const SwitchCounters& counters) {
    Json json = Json::object();
    for (std::size_t i = 0; i < counters.refused.size(); ++i) {
        if (counters.refused[i] != 0) json[std::string(to_string(static_cast<DecodeError>(i)))] = counters.refused[i];
    }
    return json;
}

}  // namespace

std::uint32_t slots_in(std::uint64_t memory_bytes, std::uint16_t lanes) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(memory_bytes / Switch::bytes_of_slot(lanes), UINT32_MAX));
}

JobConfig stream_config(const wire::ChannelTerms& terms, unsigned workers) {
    return {.workers = static_cast<std::uint8_t>(workers),
            .slots_log2 = terms.window_log2,
            .lanes = terms.lanes,
            .mode = mode_of(terms.protocol),
            .first_offset = terms.first_seq};
}

StreamPool::StreamPool(const switchml::SwitchConfig& config) : switch_(config) {}

tl::expected<std::uint8_t, std::string> StreamPool::open(const control::Branch& branch) {
    if (switch_.config().slots == 0) {
        return tl::unexpected(
            fmt::format("the memory of this switch holds no SwitchML slot of {} lanes: restart it with more --memory "
                        "or fewer --lanes",
                        switch_.config().lanes));
    }
    const wire::ChannelTerms& terms = branch.terms;
    if (terms.lanes > switch_.config().lanes) {
        return tl::unexpected(
            fmt::format("packets of {} lanes exceed the slots of this switch, which have {}: use fewer --lanes",
                        terms.lanes, switch_.config().lanes));
    }
    const auto number = free_number();
    if (!number) {
        return tl::unexpected(
            std::string("all 256 SwitchML streams of this switch are in use: wait for another job to end"));
    }
    JobConfig config = stream_config(terms, static_cast<unsigned>(std::popcount(branch.mask)));
    config.job = *number;
    if (!switch_.admit(config)) {
        return tl::unexpected(
            fmt::format("{} of {} slots are free in the SwitchML pool, but this channel needs {} adjacent ones: use a "
                        "smaller --window, or more --memory at the switch",
                        switch_.free_slots(), switch_.config().slots, config.slots()));
    }
    streams_[*number] = Stream{.branch = &branch, .key = control::key_of(terms)};
    next_ = static_cast<std::uint8_t>(*number + 1);
    return *number;
}

void StreamPool::close(const control::ChannelKey& key) {
    for (std::size_t number = 0; number < streams_.size(); ++number) {
        std::optional<Stream>& stream = streams_[number];
        if (!stream || stream->key != key) continue;
        switch_.dismiss(static_cast<std::uint8_t>(number));
        stream.reset();
    }
}

std::optional<std::uint8_t> StreamPool::free_number() const {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
        const auto number = static_cast<std::uint8_t>(next_ + i);
        if (!streams_[number]) return number;
    }
    return std::nullopt;
}

// False if the source address is not that of the worker that the packet names. True also for packets that are too short
// for a header or name no stream: the switch drops and counts these packets.
bool StreamPool::names_its_sender(std::span<const std::byte> bytes, const wire::Address& from) const {
    if (bytes.size() < switchml::header_bytes) return true;
    const auto& stream = streams_[wire::load_u8(bytes.data() + switchml::offset_job)];
    if (!stream) return true;
    const std::uint8_t worker = wire::load_u8(bytes.data() + switchml::offset_worker);
    const control::Branch& branch = *stream->branch;
    if (worker >= branch.children.size() || (branch.present >> worker & 1U) == 0) return false;
    return branch.children[worker].address == from;
}

std::optional<std::string> StreamPool::objection_to(const wire::Join& join) const {
    const wire::ChannelTerms& terms = join.terms;
    if (join.level != 0 || !std::has_single_bit(terms.mask1)) {
        return "SwitchML uses one switch: all workers of the job must join the same";
    }
    if (terms.audit || terms.server.family != 0 || terms.group.family != 0) {
        return "SwitchML has no audit lane, no parameter server and no group";
    }
    return std::nullopt;
}

bool StreamPool::has_format(std::span<const std::byte> bytes) const { return switchml::has_format(bytes); }

StreamPool::Receivers StreamPool::handle_packet(std::span<std::byte> bytes, const wire::Address& from) {
    if (!names_its_sender(bytes, from)) {
        ++strangers_;
        return {};
    }
    const Verdict verdict = switch_.handle_packet(bytes);
    if (verdict.route == Route::drop) return {};
    const control::Branch* const branch = streams_[verdict.job]->branch;
    return {branch, verdict.route == Route::everybody ? branch->present : 1U << verdict.worker};
}

std::string StreamPool::report_parts() const {
    const PoolSnapshot pool = snapshot();
    Json packets = json_of(pool.packets);
    packets["forged"] = pool.packets.count(Event::forged);
    packets["strangers"] = pool.strangers;
    Json streams = Json::array();
    for (const StreamSnapshot& stream : pool.streams) {
        streams.push_back({{"job", wire::job_to_string(stream.job)},
                           {"channel", stream.channel},
                           {"stream", stream.number},
                           {"slots", stream.slots},
                           {"packets", json_of(stream.packets)}});
    }
    return Json{{"switchml",
                 {{"slots", pool.slots},
                  {"free_slots", pool.free_slots},
                  {"packets", packets},
                  {"refused", refused_json(pool.packets)},
                  {"streams", streams}}}}
        .dump();
}

PoolSnapshot StreamPool::snapshot() const {
    PoolSnapshot snapshot{.slots = switch_.config().slots,
                          .free_slots = switch_.free_slots(),
                          .packets = switch_.counters(),
                          .strangers = strangers_,
                          .streams = {}};
    for (std::size_t i = 0; i < streams_.size(); ++i) {
        if (!streams_[i]) continue;
        const auto number = static_cast<std::uint8_t>(i);
        snapshot.streams.push_back({.job = streams_[i]->key.job,
                                    .channel = streams_[i]->key.channel,
                                    .number = number,
                                    .slots = switch_.job_config(number)->slots(),
                                    .packets = *switch_.job_counters(number)});
    }
    return snapshot;
}

}  // namespace atp::switchml
