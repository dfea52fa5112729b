// SPDX-License-Identifier: Apache-2.0
#include "crypto/tenant_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

namespace atp::crypto {
namespace {

constexpr std::string_view current_version = "1";

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blanks = " \t\r";
    const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
    const std::size_t end = text.find_last_not_of(blanks);
    return text.substr(begin, end == std::string_view::npos ? 0 : end + 1 - begin);
}

std::optional<std::uint8_t> digit_of(char c) {
    if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
    return std::nullopt;
}

bool read_hex(std::string_view text, std::span<std::byte> bytes) {
    if (text.size() != 2 * bytes.size()) return false;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        const auto high = digit_of(text[2 * at]);
        const auto low = digit_of(text[2 * at + 1]);
        if (!high || !low) return false;
        bytes[at] = static_cast<std::byte>(*high << 4U | *low);
    }
    return true;
}

bool read_id(std::string_view text, std::uint32_t& id) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    return error == std::errc() && end == text.data() + text.size() && id != 0;
}

bool read_name(std::string_view text, std::string& name) {
    name = text;
    return is_key_name(text);
}

Failure malformed(std::string_view what) {
    return fail(Operation::parse, Reason::malformed, {},
                // errors.md, forms, malformed: the key file was damaged, or names something else
                fmt::format("no key file of ATP ({}): write one with `atp key new`", what));
}

// The lines of a key file, each at most once.
struct Fields {
    TenantKey key;
    std::array<std::string_view, 5> seen{};

    // False: the value is not accepted.
    bool take(std::string_view name, std::string_view value) {
        const auto place = std::ranges::find(seen, std::string_view{});
        if (place == seen.end() || std::ranges::find(seen, name) != seen.end()) return false;
        *place = name;
        if (name == "atp_key") return value == current_version;
        if (name == "id") return read_id(value, key.id);
        if (name == "tenant") return read_name(value, key.tenant);
        if (name == "switch") return read_name(value, key.at_switch);
        return name == "key" && read_hex(value, key.key.bytes());
    }
    // Empty: nothing.
    [[nodiscard]] std::string_view missing() const {
        constexpr std::array<std::string_view, 4> needed{"atp_key", "id", "tenant", "key"};
        const auto absent = std::ranges::find_if(
            needed, [&](std::string_view name) { return std::ranges::find(seen, name) == seen.end(); });
        return absent == needed.end() ? std::string_view{} : *absent;
    }
};

}  // namespace

bool is_key_name(std::string_view name) {
    constexpr std::string_view others = "-_.";
    return !name.empty() && name.size() <= max_key_name_bytes && std::ranges::all_of(name, [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               others.find(c) != std::string_view::npos;
    });
}

// Each word follows its length, so no two pairs of words are one message.
SecretKey derive(const SecretKey& key, std::string_view purpose, std::string_view name) {
    const std::array lengths{static_cast<std::byte>(purpose.size()), static_cast<std::byte>(name.size())};
    return SecretKey(code32(key, {bytes_of("atp key"), Bytes(lengths).first(1), bytes_of(purpose),
                                  Bytes(lengths).last(1), bytes_of(name)}));
}

TenantKey key_for_switch(const TenantKey& tenant, std::string_view name) {
    return {.id = tenant.id,
            .tenant = tenant.tenant,
            .at_switch = std::string(name),
            .key = derive(tenant.key, for_join, name)};
}

std::string to_text(const TenantKey& key) {
    std::string text = fmt::format("# Secret: who reads this file can act as tenant {}{}. Keep it at mode 600.\n",
                                   key.tenant, key.at_switch.empty() ? "" : " at switch " + key.at_switch);
    text += fmt::format("atp_key = {}\nid = {}\ntenant = {}\n", current_version, key.id, key.tenant);
    if (!key.at_switch.empty()) text += fmt::format("switch = {}\n", key.at_switch);
    std::array<char, 2 * SecretKey::size> digits{};
    constexpr std::string_view hex = "0123456789abcdef";
    for (std::size_t at = 0; at < SecretKey::size; ++at) {
        const auto byte = std::to_integer<unsigned>(key.key.bytes()[at]);
        digits[2 * at] = hex[byte >> 4U];
        digits[2 * at + 1] = hex[byte & 0xFU];
    }
    text.reserve(text.size() + digits.size() + 16);  // the digits stay in one place, which wipe() finds
    text.append("key = ").append(digits.data(), digits.size()).append("\n");
    wipe(std::as_writable_bytes(std::span(digits)));
    return text;
}

Result<TenantKey> parse_key(std::string_view text) {
    Fields fields;
    for (std::size_t line = 1; !text.empty(); ++line) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view content = trimmed(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (content.empty() || content.front() == '#') continue;
        const std::size_t sign = content.find('=');
        if (sign == std::string_view::npos) return malformed(fmt::format("line {} has no '='", line));
        if (!fields.take(trimmed(content.substr(0, sign)), trimmed(content.substr(sign + 1)))) {
            return malformed(fmt::format("line {} has a name or a value that is not accepted", line));
        }
    }
    if (const std::string_view absent = fields.missing(); !absent.empty()) {
        return malformed(fmt::format("no line '{} = ...'", absent));
    }
    return std::move(fields.key);
}

}  // namespace atp::crypto
