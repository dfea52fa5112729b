// SPDX-License-Identifier: Apache-2.0
#include "p4agent/pass_tables.h"

#include <algorithm>
#include <utility>

namespace atp::p4agent {
namespace {

constexpr const char* streams_table = "streams";
constexpr const char* places_table = "places";
constexpr const char* tags = "one_pass.tag";

// BMv2 has a register XOR its initial value, so the bit FREE of a free tag is 0.
bool is_held_by(std::uint64_t tag, std::uint8_t stream) {
    return (tag & ATP_TAG_FREE) != 0 && (tag >> ATP_TAG_STREAM_SHIFT & ATP_TAG_STREAMS) == stream;
}

}  // namespace

PassTables::PassTables(Bmv2& bmv2) : bmv2_(bmv2) {
    for (std::uint8_t number = 1; number <= most_streams; ++number) free_streams_.push_back(number);
}

void PassTables::clear() {
    bmv2_.clear_table(streams_table);
    bmv2_.clear_table(places_table);
    bmv2_.clear_registers(tags);
}

bool PassTables::admit(const control::AdmittedJob& job, std::uint16_t slot) {
    served_.insert_or_assign(job.key(), Served{.job = job, .slot = slot});
    return true;
}

void PassTables::dismiss(const control::JobKey& job) {
    const auto found = served_.find(job);
    if (found == served_.end()) return;
    for (auto& [channel, stream] : found->second.streams) {
        bmv2_.remove_entry(streams_table, stream.entry);
        if (stream.entry_of_group) bmv2_.remove_entry(streams_table, *stream.entry_of_group);
        for (ServedPlace& place : stream.places) hide(place);
        free_streams_.push_back(stream.number);
    }
    served_.erase(found);
}

std::optional<Bmv2::Handle> PassTables::add_stream(const Served& served, std::uint16_t channel, std::uint64_t token,
                                                   std::uint8_t number) {
    return bmv2_.add_entry(streams_table, {big_endian(served.job.job, 4), big_endian(token, 8), big_endian(channel, 2)},
                           {.name = "admit", .arguments = {big_endian(number, 1), big_endian(served.slot, 2)}});
}

void PassTables::add_group(const Served& served, std::uint16_t channel, Stream& stream) {
    const auto group = served.groups.find(channel);
    if (group == served.groups.end()) return;
    if (stream.entry_of_group) bmv2_.remove_entry(streams_table, *stream.entry_of_group);
    stream.entry_of_group = add_stream(served, channel, group->second, stream.number);
}

// Null: all streams are in use, or the switch rejects another one.
PassTables::Stream* PassTables::stream_of(Served& served, std::uint16_t channel) {
    if (const auto found = served.streams.find(channel); found != served.streams.end()) return &found->second;
    if (free_streams_.empty()) return nullptr;
    const std::uint8_t number = free_streams_.front();
    if (was_used_[number]) free_aggregators(number);
    const auto entry = add_stream(served, channel, served.job.token, number);
    if (!entry) return nullptr;
    free_streams_.pop_front();
    was_used_[number] = true;
    Stream& stream = served.streams[channel];
    stream = {.number = number, .entry = *entry};
    add_group(served, channel, stream);
    return &stream;
}

// The table serves no packet of the stream any more, so the pipeline neither adds to these aggregators nor frees them.
// If a packet of another stream claims one meanwhile, its fragment loses what it had, and resends recover it.
void PassTables::free_aggregators(std::uint8_t stream) {
    const std::vector<std::uint64_t> all = bmv2_.registers(tags);
    for (std::uint32_t index = 0; index < all.size(); ++index)
        if (is_held_by(all[index], stream)) bmv2_.clear_register(tags, index);
}

void PassTables::learn_place(const control::JobKey& job, const control::AdmittedPlace& place) {
    const auto found = served_.find(job);
    if (found == served_.end()) return;
    Stream* const stream = stream_of(found->second, place.channel);
    if (stream == nullptr || stream->places.size() >= most_places) return;
    const auto has_unit = [&place](const ServedPlace& each) { return each.place.unit == place.unit; };
    if (std::ranges::any_of(stream->places, has_unit)) return;
    const auto number = static_cast<std::uint8_t>(stream->places.size() + 1);
    stream->places.push_back({.place = place, .number = number});
    show(found->second, stream->number, stream->places.back());
}

void PassTables::show(const Served& served, std::uint8_t stream, ServedPlace& place) {
    if (place.entry || served.job.level >= ATP_LEVELS) return;
    const std::uint8_t hop = place.place.unit == 0 ? 1 : 0;
    place.entry =
        bmv2_.add_entry(places_table, {big_endian(stream, 1), big_endian(hop, 1), big_endian(place.place.unit, 4)},
                        {.name = "serve", .arguments = {big_endian(place.number, 1), big_endian(place.place.mask, 4)}});
}

void PassTables::hide(ServedPlace& place) {
    if (place.entry) bmv2_.remove_entry(places_table, *place.entry);
    place.entry.reset();
}

void PassTables::learn_group(const control::ChannelKey& channel, std::uint64_t group_number) {
    const auto found = served_.find(channel.of_job());
    if (found == served_.end()) return;
    Served& served = found->second;
    if (std::exchange(served.groups[channel.channel], group_number) == group_number) return;
    const auto stream = served.streams.find(channel.channel);
    if (stream != served.streams.end()) add_group(served, channel.channel, stream->second);
}

void PassTables::set_level(const control::JobKey& job, std::uint8_t level) {
    const auto found = served_.find(job);
    if (found == served_.end()) return;
    found->second.job.level = level;
    for (auto& [channel, stream] : found->second.streams) {
        for (ServedPlace& place : stream.places) {
            if (level >= ATP_LEVELS) {
                hide(place);
            } else {
                show(found->second, stream.number, place);
            }
        }
    }
}

}  // namespace atp::p4agent
