// SPDX-License-Identifier: Apache-2.0
// Decodes arbitrary bytes as control messages: decoders must not read past the bytes. If a decoded message is encoded
// again, the new bytes must decode to the same fields and must not be longer, but for the fields that earlier programs
// lack.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "input.h"
#include "require.h"
#include "wire/control.h"
#include "wire/message_code.h"

namespace atp::fuzz {
namespace {

// What encoding adds to a message of an earlier program: the length of an empty text.
template <class Message>
constexpr std::size_t later_bytes = 0;
template <>
constexpr std::size_t later_bytes<wire::Join> = sizeof(std::uint16_t);

// Flags decode as "not zero", and padding is ignored. The first encoding is therefore canonical, and the second one
// must equal it.
template <class Decode>
void require_stable(std::span<const std::byte> bytes, Decode decode) {
    const auto message = decode(bytes);
    if (!message) return;
    Bytes again(std::max<std::size_t>(bytes.size(), 2 * wire::report_part_bytes));
    again.resize(encode(*message, again));
    require(!again.empty(), "a decoded message can be encoded");
    require(again.size() <= bytes.size() + later_bytes<std::remove_cvref_t<decltype(*message)>>,
            "the encoded message is not longer than the input");
    const auto read = decode(again);
    require(read.has_value(), "the encoded message can be decoded");
    Bytes twice(again.size());
    require(encode(*read, twice) == again.size() && twice == again, "the second encoding equals the first");
}

// Texts of other hosts reach logs and terminals.
void require_printable(const std::string& text) {
    for (std::size_t at = 0; at < text.size(); ++at) {
        const auto byte = static_cast<unsigned char>(text[at]);
        require(byte >= 0x20 && byte != 0x7F, "a text has no control character of ASCII");
        const bool is_c1 = byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;
        require(!is_c1, "a text has no control character of C1");
    }
}

void require_printable(std::span<const std::byte> bytes) {
    if (const auto joined = wire::decode<wire::Joined>(bytes)) {
        for (const wire::Statement& each : joined->statements) require_printable(each.text);
    }
    if (const auto join = wire::decode<wire::Join>(bytes)) {
        for (const wire::Statement& each : join->statements) require_printable(each.text);
        require_printable(join->job_name);
    }
    if (const auto refused = wire::decode<wire::Refused>(bytes)) require_printable(refused->text);
    if (const auto welcome = wire::decode<wire::Welcome>(bytes)) require_printable(welcome->software);
    if (const auto report = wire::decode<wire::Report>(bytes)) require_printable(report->text);
    if (const auto notice = wire::decode<wire::GaveUp>(bytes)) require_printable(notice->text);
    if (const auto shared = wire::decode<wire::SharedFacts>(bytes)) require_printable(shared->problem);
    if (const auto facts = wire::decode<wire::RankFacts>(bytes)) {
        for (const std::string& text : {facts->kernel, facts->host_name, facts->switch_address, facts->terms}) {
            require_printable(text);
        }
    }
}

// Whoever checks a code reads what it covers.
template <class Part>
void require_code_within(const Bytes& bytes) {
    const auto coded = wire::code_of<Part>(bytes);
    if (!coded) return;
    require(coded->covered.data() == bytes.data(), "a code covers a message from its first byte");
    require(coded->covered.size() + sizeof coded->part.code <= bytes.size(),
            "a code covers no byte behind the message");
}

void require_in_range(const wire::Join& join) {
    require(join.terms.token != 0, "the token is not 0");
    require(join.terms.lanes != 0 && join.terms.lanes <= ATP_MAX_LANES, "the number of lanes is 1 to ATP_MAX_LANES");
    require(join.terms.window_log2 <= ATP_WINDOW_LOG2_MAX, "window_log2 is at most ATP_WINDOW_LOG2_MAX");
    require(std::isfinite(join.terms.scale) && join.terms.scale > 0, "the scale is finite and above 0");
    const auto first = std::to_integer<unsigned>(join.terms.group.host.front());
    require(join.terms.group.family != 4 || (first >= 224 && first <= 239), "an IPv4 group is a multicast address");
    require(join.terms.group.family != 6 || first == 0xFF, "an IPv6 group is a multicast address");
    require(join.level <= ATP_LEVELS, "the level is that of a switch or of the server");
    require(!join.units.empty() && join.units.size() <= ATP_BITMAP_BITS, "1 to 32 units join");
    for (const wire::JoiningUnit& unit : join.units) {
        require(unit.unit < ATP_BITMAP_BITS, "the unit is a bit of the bitmap");
        require(unit.ranks.size() == static_cast<std::size_t>(std::popcount(unit.members)), "each member has one rank");
        require((unit.members & ~unit.mask0) == 0, "all members belong to the unit");
    }
}

}  // namespace

void run(Input& input) {
    const Bytes bytes = input.rest();
    require_stable(bytes, wire::decode<wire::Join>);
    require_stable(bytes, wire::decode<wire::Joined>);
    require_stable(bytes, wire::decode<wire::Refused>);
    require_stable(bytes, wire::decode<wire::Leave>);
    require_stable(bytes, wire::decode<wire::Retry>);
    require_stable(bytes, wire::decode<wire::Hello>);
    require_stable(bytes, wire::decode<wire::Welcome>);
    require_stable(bytes, wire::decode<wire::Stats>);
    require_stable(bytes, wire::decode<wire::Report>);
    require_stable(bytes, wire::decode<wire::RankFacts>);
    require_stable(bytes, wire::decode<wire::SharedFacts>);
    require_stable(bytes, wire::decode<wire::NetworkFacts>);
    require_stable(bytes, wire::decode<wire::ServerFacts>);
    require_stable(bytes, wire::decode<wire::ReachedFacts>);
    require_stable(bytes, wire::decode<wire::JobPlan>);
    require_stable(bytes, wire::decode<wire::GaveUp>);
    if (const auto join = wire::decode<wire::Join>(bytes)) require_in_range(*join);
    require_printable(bytes);
    require(!(wire::control_type(bytes) && wire::foreign_version(bytes)),
            "a message has this version or another one, never both");
    static_cast<void>(wire::refusal_version(bytes));
    require_code_within<wire::JoinCode>(bytes);
    require_code_within<wire::JoinedCode>(bytes);
    require_code_within<wire::PlainCode>(bytes);
}

}  // namespace atp::fuzz
