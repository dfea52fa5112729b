// SPDX-License-Identifier: Apache-2.0
#include "switchml/stream_pool.h"

#include <fmt/format.h>

#include <bit>

#include "switchml/packet.h"

namespace atp::switchml {

using switchml::Event;
using switchml::JobConfig;
using switchml::Mode;

namespace {

Mode mode_of(wire::ChannelProtocol protocol) {
    switch (protocol) {
        case wire::ChannelProtocol::switchml_faithful: return Mode::faithful;
        case wire::ChannelProtocol::switchml_lossless: return Mode::lossless;
        default: return Mode::compares_offsets;
    }
}

}  // namespace

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
            fmt::format("the memory of this switch holds no slot of SwitchML, which has {} lanes; start it with more "
                        "--memory or fewer --lanes",
                        switch_.config().lanes));
    }
    const wire::ChannelTerms& terms = branch.terms;
    if (terms.lanes > switch_.config().lanes) {
        return tl::unexpected(
            fmt::format("packets of {} lanes are longer than a slot of this switch, which has {}; "
                        "take fewer --lanes",
                        terms.lanes, switch_.config().lanes));
    }
    const auto number = free_number();
    if (!number) return tl::unexpected(std::string("all 256 numbers of SwitchML's streams are in use here"));
    JobConfig config = stream_config(terms, static_cast<unsigned>(std::popcount(branch.mask)));
    config.job = *number;
    if (!switch_.admit(config)) {
        return tl::unexpected(
            fmt::format("no room is left in SwitchML's pool: {} of {} slots are free, and this "
                        "channel needs {} in a row; take a smaller --window, or start the switch "
                        "with more --memory",
                        switch_.free_slots(), switch_.config().slots, config.slots()));
    }
    streams_[*number] = Stream{.branch = &branch, .job = terms.job, .channel = terms.channel};
    next_ = static_cast<std::uint8_t>(*number + 1);
    return *number;
}

void StreamPool::close(std::uint32_t job, std::uint16_t channel) {
    for (std::size_t number = 0; number < streams_.size(); ++number) {
        std::optional<Stream>& stream = streams_[number];
        if (!stream || stream->job != job || stream->channel != channel) continue;
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

// Returns true if the packet is too short for a header or names no stream: the switch counts these packets.
bool StreamPool::names_its_sender(std::span<const std::byte> bytes, const wire::Address& from) const {
    if (bytes.size() < switchml::header_bytes) return true;
    const auto& stream = streams_[wire::load_u8(bytes.data() + switchml::offset_job)];
    if (!stream) return true;
    const std::uint8_t worker = wire::load_u8(bytes.data() + switchml::offset_worker);
    const control::Branch& branch = *stream->branch;
    if (worker >= branch.children.size() || (branch.present >> worker & 1U) == 0) return false;
    return branch.children[worker].address == from;
}

switchml::Verdict StreamPool::handle_packet(std::span<std::byte> bytes, const wire::Address& from) {
    if (names_its_sender(bytes, from)) return switch_.handle_packet(bytes);
    ++strangers_;
    return {.event = Event::forged};
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
        snapshot.streams.push_back({.job = streams_[i]->job,
                                    .channel = streams_[i]->channel,
                                    .number = number,
                                    .slots = switch_.job_config(number)->slots(),
                                    .packets = *switch_.job_counters(number)});
    }
    return snapshot;
}

}  // namespace atp::switchml
