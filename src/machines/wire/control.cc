// SPDX-License-Identifier: Apache-2.0
#include "wire/control.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "wire/packet.h"

namespace atp::wire {
namespace {

constexpr std::array<std::string_view, 4> protocol_names = {"atp", "switchml", "switchml-faithful",
                                                            "switchml-lossless"};

constexpr std::uint8_t version_mark = control_version & 0xF0U;

// Appends big-endian fields. finish() returns 0 if one of them did not fit.
class Writer {
  public:
    Writer(std::span<std::byte> bytes, ControlType type) : bytes_(bytes) {
        u8(control_version);
        u8(static_cast<std::uint8_t>(type));
        u16(0);
    }

    void u8(std::uint8_t value) {
        if (std::byte* at = take(1)) store_u8(at, value);
    }
    void u16(std::uint16_t value) {
        if (std::byte* at = take(2)) store_u16(at, value);
    }
    void u32(std::uint32_t value) {
        if (std::byte* at = take(4)) store_u32(at, value);
    }
    void u64(std::uint64_t value) {
        u32(static_cast<std::uint32_t>(value >> 32U));
        u32(static_cast<std::uint32_t>(value));
    }
    void f64(double value) { u64(std::bit_cast<std::uint64_t>(value)); }
    void flag(bool value) { u8(value ? 1 : 0); }
    // Writes a length of 2 bytes and then the text, cut to `most` bytes.
    void text(std::string_view value, std::size_t most) {
        value = value.substr(0, most);
        u16(static_cast<std::uint16_t>(value.size()));
        if (std::byte* at = take(value.size())) std::memcpy(at, value.data(), value.size());
    }
    void raw(std::span<const std::byte> value) {
        if (std::byte* at = take(value.size())) std::memcpy(at, value.data(), value.size());
    }
    [[nodiscard]] std::size_t finish(std::size_t padded_bytes = 0) {
        if (padded_bytes > at_) {
            const std::size_t padding = padded_bytes - at_;
            if (std::byte* at = take(padding)) std::memset(at, 0, padding);
        }
        return fits_ ? at_ : 0;
    }

  private:
    std::byte* take(std::size_t count) {
        fits_ = fits_ && count <= bytes_.size() - at_;
        if (!fits_) return nullptr;
        at_ += count;
        return bytes_.data() + at_ - count;
    }

    std::span<std::byte> bytes_;
    std::size_t at_ = 0;
    bool fits_ = true;
};

// Reads the fields that Writer wrote. Beyond the end every field reads zero, and ok() is false.
class Reader {
  public:
    Reader(std::span<const std::byte> bytes, ControlType type) : bytes_(bytes) {
        ok_ = control_type(bytes) == type;
        at_ = control_prefix_bytes;
    }

    std::uint8_t u8() {
        const std::byte* at = take(1);
        return at == nullptr ? std::uint8_t{0} : load_u8(at);
    }
    std::uint16_t u16() {
        const std::byte* at = take(2);
        return at == nullptr ? std::uint16_t{0} : load_u16(at);
    }
    std::uint32_t u32() {
        const std::byte* at = take(4);
        return at == nullptr ? 0U : load_u32(at);
    }
    std::uint64_t u64() {
        const std::uint64_t high = u32();
        return (high << 32U) | u32();
    }
    double f64() { return std::bit_cast<double>(u64()); }
    bool flag() { return u8() != 0; }
    std::string text(std::size_t most) {
        const std::size_t size = u16();
        check(size <= most);
        const std::byte* at = take(size);
        return at == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(at), size);
    }
    void raw(std::span<std::byte> into) {
        if (const std::byte* at = take(into.size())) std::memcpy(into.data(), at, into.size());
    }
    void check(bool holds) { ok_ = ok_ && holds; }
    [[nodiscard]] bool ok() const { return ok_; }

  private:
    const std::byte* take(std::size_t count) {
        check(at_ <= bytes_.size() && count <= bytes_.size() - at_);
        if (!ok_) return nullptr;
        at_ += count;
        return bytes_.data() + at_ - count;
    }

    std::span<const std::byte> bytes_;
    std::size_t at_ = 0;
    bool ok_ = false;
};

template <class Message>
std::optional<Message> accepted(const Reader& reader, Message message) {
    if (!reader.ok()) return std::nullopt;
    return message;
}

// Members and units are numbered from bit 0 without gaps.
bool has_no_gap(std::uint32_t mask) { return mask != 0 && (mask & (mask + 1)) == 0; }

void write_endpoint(Writer& writer, const Endpoint& endpoint) {
    writer.u8(endpoint.family), writer.u16(endpoint.port), writer.raw(endpoint.host);
}

Endpoint read_endpoint(Reader& reader) {
    Endpoint endpoint;
    endpoint.family = reader.u8(), endpoint.port = reader.u16(), reader.raw(endpoint.host);
    reader.check(endpoint.family == 0 || endpoint.family == 4 || endpoint.family == 6);
    return endpoint;
}

// Only multicast groups are accepted: otherwise a JOIN could direct results to a host that did not request them.
bool is_group(const Endpoint& endpoint) {
    const auto first = std::to_integer<unsigned>(endpoint.host.front());
    return endpoint.family == 4 ? (first & 0xF0U) == 0xE0U : first == 0xFFU;
}

void write_terms(Writer& writer, const ChannelTerms& terms) {
    writer.u32(terms.job), writer.u32(terms.token), writer.u16(terms.channel), writer.u16(terms.lanes);
    writer.u8(terms.window_log2), writer.flag(terms.audit), writer.u32(terms.aggregators);
    writer.u32(terms.first_seq), writer.u32(terms.mask1), writer.f64(terms.scale);
    write_endpoint(writer, terms.server);
    writer.u8(static_cast<std::uint8_t>(terms.protocol));
    write_endpoint(writer, terms.group);
}

ChannelTerms read_terms(Reader& reader) {
    ChannelTerms terms;
    terms.job = reader.u32(), terms.token = reader.u32(), terms.channel = reader.u16(), terms.lanes = reader.u16();
    terms.window_log2 = reader.u8(), terms.audit = reader.flag(), terms.aggregators = reader.u32();
    terms.first_seq = reader.u32(), terms.mask1 = reader.u32(), terms.scale = reader.f64();
    terms.server = read_endpoint(reader);
    reader.check(terms.token != 0 && terms.lanes > (terms.audit ? 1 : 0) && terms.lanes <= ATP_MAX_LANES);
    reader.check(terms.window_log2 <= ATP_WINDOW_LOG2_MAX && has_no_gap(terms.mask1));
    reader.check(std::isfinite(terms.scale) && terms.scale > 0);
    const std::uint8_t protocol = reader.u8();
    reader.check(protocol >= 1 && protocol <= protocol_names.size());
    terms.protocol = static_cast<ChannelProtocol>(protocol);
    terms.group = read_endpoint(reader);
    reader.check(terms.group.family == 0 || is_group(terms.group));
    return terms;
}

// At level 0 each worker joins alone. A switch joins for all members below it. If the switch of a rack has no
// address, each worker of the rack joins alone at level 1.
bool fits_level(const JoiningUnit& unit, std::uint8_t level) {
    const bool alone = std::has_single_bit(unit.members);
    const bool whole = unit.members == unit.mask0;
    return level == 0 ? alone && !unit.direct : whole || (level == 1 && alone);
}

JoiningUnit read_unit(Reader& reader, std::uint32_t mask1) {
    JoiningUnit unit;
    unit.unit = reader.u8(), unit.direct = reader.flag(), unit.members = reader.u32(), unit.mask0 = reader.u32();
    reader.check(unit.unit < ATP_BITMAP_BITS && (mask1 >> (unit.unit % ATP_BITMAP_BITS) & 1U) != 0);
    reader.check(unit.members != 0 && (unit.members & ~unit.mask0) == 0 && has_no_gap(unit.mask0) &&
                 (!unit.direct || unit.mask0 == 1));
    const int count = reader.ok() ? std::popcount(unit.members) : 0;
    for (int i = 0; i < count; ++i) unit.ranks.push_back(reader.u16());
    reader.check(std::ranges::find(unit.ranks, ATP_WORKER_ALL) == unit.ranks.end());
    return unit;
}

}  // namespace

std::optional<ControlType> control_type(std::span<const std::byte> bytes) {
    if (bytes.size() < control_prefix_bytes || load_u8(bytes.data()) != control_version) return std::nullopt;
    const std::uint8_t type = load_u8(bytes.data() + 1);
    if (type < static_cast<std::uint8_t>(ControlType::join) || type > static_cast<std::uint8_t>(ControlType::report)) {
        return std::nullopt;
    }
    return static_cast<ControlType>(type);
}

std::optional<std::uint8_t> foreign_version(std::span<const std::byte> bytes) {
    if (bytes.size() < control_prefix_bytes) return std::nullopt;
    const std::uint8_t version = load_u8(bytes.data());
    const std::uint8_t type = load_u8(bytes.data() + 1);
    const bool asks =
        type == static_cast<std::uint8_t>(ControlType::join) || type == static_cast<std::uint8_t>(ControlType::hello);
    if ((version & 0xF0U) != version_mark || version == control_version || !asks) return std::nullopt;
    return version;
}

std::optional<std::uint8_t> refusal_version(std::span<const std::byte> bytes) {
    if (bytes.size() < control_prefix_bytes) return std::nullopt;
    const std::uint8_t version = load_u8(bytes.data());
    if ((version & 0xF0U) != version_mark) return std::nullopt;
    if (load_u8(bytes.data() + 1) != static_cast<std::uint8_t>(ControlType::refused)) return std::nullopt;
    return version;
}

std::size_t encode(const Join& message, std::span<std::byte> bytes) {
    Writer writer(bytes, ControlType::join);
    write_terms(writer, message.terms);
    writer.u8(message.level), writer.flag(message.begun), writer.flag(message.receives_group);
    writer.u8(static_cast<std::uint8_t>(message.units.size()));
    for (const JoiningUnit& unit : message.units) {
        writer.u8(unit.unit), writer.flag(unit.direct), writer.u32(unit.members), writer.u32(unit.mask0);
        for (const std::uint16_t rank : unit.ranks) writer.u16(rank);
    }
    return writer.finish();
}

std::optional<Join> decode_join(std::span<const std::byte> bytes) {
    Reader reader(bytes, ControlType::join);
    Join message;
    message.terms = read_terms(reader);
    message.level = reader.u8(), message.begun = reader.flag(), message.receives_group = reader.flag();
    const std::size_t units = reader.u8();
    reader.check(message.level <= ATP_LEVELS && units >= 1 && units <= ATP_BITMAP_BITS);
    std::uint32_t seen = 0;
    for (std::size_t i = 0; i < units && reader.ok(); ++i) {
        message.units.push_back(read_unit(reader, message.terms.mask1));
        const std::uint32_t bit = 1U << (message.units.back().unit % ATP_BITMAP_BITS);
        reader.check((seen & bit) == 0 && fits_level(message.units.back(), message.level));
        seen |= bit;
    }
    // A JOIN to level 0 or 1 covers one unit. A JOIN to level 2, from the last switch, covers all units.
    reader.check(message.level == ATP_LEVELS ? seen == message.terms.mask1 : message.units.size() == 1);
    return accepted(reader, std::move(message));
}

std::size_t encode(const Joined& message, std::span<std::byte> bytes) {
    Writer writer(bytes, ControlType::joined);
    writer.u32(message.job), writer.u32(message.token), writer.u16(message.channel), writer.flag(message.ready);
    writer.u32(message.missing_units), writer.u32(message.missing_members), writer.u8(message.stream);
    return writer.finish();
}

std::optional<Joined> decode_joined(std::span<const std::byte> bytes) {
    Reader reader(bytes, ControlType::joined);
    Joined message;
    message.job = reader.u32(), message.token = reader.u32(), message.channel = reader.u16();
    message.ready = reader.flag(), message.missing_units = reader.u32(), message.missing_members = reader.u32();
    message.stream = reader.u8();
    return accepted(reader, message);
}

std::size_t encode(const Refused& message, std::span<std::byte> bytes) {
    Writer writer(bytes, ControlType::refused);
    writer.u32(message.job), writer.u32(message.token), writer.u16(message.channel);
    writer.u8(static_cast<std::uint8_t>(message.reason)), writer.text(message.text, max_refusal_bytes);
    return writer.finish();
}

std::optional<Refused> decode_refused(std::span<const std::byte> bytes) {
    Reader reader(bytes, ControlType::refused);
    Refused message;
    message.job = reader.u32(), message.token = reader.u32(), message.channel = reader.u16();
    const std::uint8_t reason = reader.u8();
    reader.check(reason >= 1 && reason <= static_cast<std::uint8_t>(Refusal::unsupported));
    message.reason = static_cast<Refusal>(reason), message.text = reader.text(max_refusal_bytes);
    return accepted(reader, std::move(message));
}

std::size_t encode(const Leave& message, std::span<std::byte> bytes) {
    Writer writer(bytes, ControlType::leave);
    writer.u32(message.job), writer.u32(message.token), writer.u16(message.channel);
    writer.u8(message.unit), writer.u8(message.member);
    return writer.finish();
}

std::optional<Leave> decode_leave(std::span<const std::byte> bytes) {
    Reader reader(bytes, ControlType::leave);
    Leave message;
    message.job = reader.u32(), message.token = reader.u32(), message.channel = reader.u16();
    message.unit = reader.u8(), message.member = reader.u8();
    reader.check(message.token != 0 && message.unit < ATP_BITMAP_BITS && message.member < ATP_BITMAP_BITS);
    return accepted(reader, message);
}

std::size_t encode(const Hello& message, std::span<std::byte> bytes, std::size_t padded_bytes) {
    Writer writer(bytes, ControlType::hello);
    writer.u64(message.nonce);
    return writer.finish(padded_bytes);
}

std::optional<Hello> decode_hello(std::span<const std::byte> bytes) {
    Reader reader(bytes, ControlType::hello);
    return accepted(reader, Hello{.nonce = reader.u64()});
}

std::size_t encode(const Welcome& message, std::span<std::byte> bytes, std::size_t padded_bytes) {
    Writer writer(bytes, ControlType::welcome);
    writer.u64(message.nonce), writer.u32(message.received_bytes);
    const std::size_t switches = std::min(message.path.size(), max_path_switches);
    writer.u8(static_cast<std::uint8_t>(switches));
    for (std::size_t i = 0; i < switches; ++i) {
        writer.u64(message.path[i].id), writer.u32(message.path[i].aggregators), writer.u16(message.path[i].lanes);
        writer.u32(message.path[i].slots);
    }
    writer.text(message.software, 64);
    return writer.finish(padded_bytes);
}

std::optional<Welcome> decode_welcome(std::span<const std::byte> bytes) {
    Reader reader(bytes, ControlType::welcome);
    Welcome message;
    message.nonce = reader.u64(), message.received_bytes = reader.u32();
    const std::size_t switches = reader.u8();
    reader.check(switches >= 1 && switches <= max_path_switches);
    for (std::size_t i = 0; i < switches && reader.ok(); ++i) {
        PathSwitch next;
        next.id = reader.u64(), next.aggregators = reader.u32(), next.lanes = reader.u16(), next.slots = reader.u32();
        message.path.push_back(next);
    }
    message.software = reader.text(64);
    return accepted(reader, std::move(message));
}

namespace {
constexpr std::size_t report_head_bytes = control_prefix_bytes + 4 + 4 + 2 + 2 + 2;
}  // namespace

std::size_t encode(const Stats& message, std::span<std::byte> bytes) {
    Writer writer(bytes, ControlType::stats);
    writer.u32(message.nonce), writer.u32(message.snapshot), writer.u16(message.part);
    return writer.finish(report_head_bytes + report_part_bytes);
}

std::optional<Stats> decode_stats(std::span<const std::byte> bytes) {
    Reader reader(bytes, ControlType::stats);
    Stats message;
    message.nonce = reader.u32(), message.snapshot = reader.u32(), message.part = reader.u16();
    // The request is as long as the longest answer, so a switch does not amplify requests with forged senders.
    reader.check(bytes.size() >= report_head_bytes + report_part_bytes);
    return accepted(reader, message);
}

std::size_t encode(const Report& message, std::span<std::byte> bytes) {
    Writer writer(bytes, ControlType::report);
    writer.u32(message.nonce), writer.u32(message.snapshot), writer.u16(message.part), writer.u16(message.parts);
    writer.text(message.text, report_part_bytes);
    return writer.finish();
}

std::optional<Report> decode_report(std::span<const std::byte> bytes) {
    Reader reader(bytes, ControlType::report);
    Report message;
    message.nonce = reader.u32(), message.snapshot = reader.u32(), message.part = reader.u16();
    message.parts = reader.u16(), message.text = reader.text(report_part_bytes);
    reader.check(message.part < message.parts);
    return accepted(reader, std::move(message));
}

std::string_view to_string(ControlType type) {
    switch (type) {
        case ControlType::join: return "JOIN";
        case ControlType::joined: return "JOINED";
        case ControlType::refused: return "REFUSED";
        case ControlType::leave: return "LEAVE";
        case ControlType::hello: return "HELLO";
        case ControlType::welcome: return "WELCOME";
        case ControlType::stats: return "STATS";
        case ControlType::report: return "REPORT";
    }
    return "unknown";
}

std::string_view to_string(Refusal reason) {
    switch (reason) {
        case Refusal::version: return "version";
        case Refusal::malformed: return "malformed";
        case Refusal::full: return "full";
        case Refusal::token: return "token";
        case Refusal::terms: return "terms";
        case Refusal::place: return "place";
        case Refusal::restarted: return "restarted";
        case Refusal::parent: return "parent";
        case Refusal::unsupported: return "unsupported";
    }
    return "unknown";
}

std::string_view to_string(ChannelProtocol protocol) {
    const std::size_t at = static_cast<std::size_t>(protocol) - 1;
    return at < protocol_names.size() ? protocol_names[at] : "unknown";
}

}  // namespace atp::wire
