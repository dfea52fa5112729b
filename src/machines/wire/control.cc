// SPDX-License-Identifier: Apache-2.0
#include "wire/control.h"

#include "wire/bytes.h"

namespace atp::wire {
namespace {

constexpr std::uint8_t version_mark = control_version & 0xF0U;
static_assert(static_cast<std::uint8_t>(first_control_type) == ATP_TYPE_CONTROL);

}  // namespace

std::optional<ControlType> control_type(std::span<const std::byte> bytes) {
    if (bytes.size() < control_prefix_bytes || load_u8(bytes.data()) != control_version) return std::nullopt;
    const std::uint8_t type = load_u8(bytes.data() + 1);
    if (type < static_cast<std::uint8_t>(first_control_type) || type > static_cast<std::uint8_t>(last_control_type)) {
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

std::optional<std::uint64_t> nonce_of(std::span<const std::byte> bytes) {
    if (bytes.size() < control_prefix_bytes + sizeof(std::uint64_t)) return std::nullopt;
    return load_u64(bytes.data() + control_prefix_bytes);
}

// tools/write_wire writes the names from src/machines/wire/wire.toml.
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
        case ControlType::retry: return "RETRY";
    }
    return "unknown";
}

std::string_view to_string(StoreType type) {
    switch (type) {
        case StoreType::facts: return "FACTS";
        case StoreType::shared: return "SHARED";
        case StoreType::network: return "NETWORK";
        case StoreType::server: return "SERVER";
        case StoreType::reached: return "REACHED";
        case StoreType::plan: return "PLAN";
        case StoreType::gave_up: return "GAVE_UP";
    }
    return "unknown";
}
// End of the written part.

}  // namespace atp::wire
