// SPDX-License-Identifier: Apache-2.0
#include "control/session_code.h"

#include <algorithm>
#include <array>
#include <variant>

#include "wire/bytes.h"

namespace atp::control {
namespace {

constexpr std::string_view purpose = "atp session";

crypto::SecretKey session_key(const crypto::SecretKey& join_key, std::uint64_t nonce, std::uint64_t boot,
                              const ChannelKey& channel) {
    std::array<std::byte, 8 + 8 + 4 + 8 + 2> session{};
    wire::store_u64(session.data(), nonce);
    wire::store_u64(session.data() + 8, boot);
    wire::store_u32(session.data() + 16, channel.job);
    wire::store_u64(session.data() + 20, channel.token);
    wire::store_u16(session.data() + 28, channel.channel);
    return crypto::SecretKey(crypto::code32(join_key, {crypto::bytes_of(purpose), session}));
}

}  // namespace

SessionCode::SessionCode(const crypto::SecretKey& join_key, std::uint64_t nonce, std::uint64_t boot,
                         const ChannelKey& channel)
    : key_(session_key(join_key, nonce, boot, channel)) {}

void SessionCode::write(Direction direction, std::span<std::byte> message) const {
    const std::size_t covered = message.size() - sizeof(wire::MessageCode);
    std::ranges::copy(code_of(direction, message.first(covered)), message.subspan(covered).begin());
}

// A switch in the path sets one flag of a JOIN that passes, so the flag counts as 0.
wire::MessageCode SessionCode::code_of(Direction direction, std::span<const std::byte> covered) const {
    const std::array to{static_cast<std::byte>(direction)};
    constexpr std::array no_flag{std::byte{0}};
    const bool is_join = wire::control_type(covered) == wire::ControlType::join;
    if (!is_join || covered.size() <= wire::int32_path_at) return crypto::code16(key_, {to, covered});
    return crypto::code16(
        key_, {to, covered.first(wire::int32_path_at), no_flag, covered.subspan(wire::int32_path_at + no_flag.size())});
}

std::size_t pad(std::span<std::byte> bytes, std::size_t size, std::size_t least) {
    if (size == 0 || least > bytes.size()) return 0;
    if (size < least) std::ranges::fill(bytes.subspan(size, least - size), std::byte{0});
    return std::max(size, least);
}

std::size_t encode_bare(const wire::JoiningMessage& message, std::span<std::byte> bytes) {
    return std::visit([bytes](const auto& each) { return wire::encode(each, bytes); }, message);
}

}  // namespace atp::control
