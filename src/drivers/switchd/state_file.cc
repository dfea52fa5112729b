// SPDX-License-Identifier: Apache-2.0
#include "switchd/state_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "net/descriptor.h"
#include "net/random.h"

namespace atp::switchd {
namespace {

constexpr std::string_view prefix = "atp-switch-state 1 ";
constexpr std::size_t digits = 16;  // of half a key
constexpr std::size_t line_bytes = prefix.size() + 2 * digits + 1;

Failure failed(const std::string& path) { return fail_with_errno(Operation::open, errno, path); }

Failure malformed(const std::string& path, const std::string& why) {
    return fail(Operation::open, Reason::malformed, path, why);
}

std::optional<std::uint64_t> half_in(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<Secret> key_in(std::string_view line) {
    if (line.size() != line_bytes || !line.starts_with(prefix) || line.back() != '\n') return std::nullopt;
    const auto first = half_in(line.substr(prefix.size(), digits));
    const auto second = half_in(line.substr(prefix.size() + digits, digits));
    if (!first || !second) return std::nullopt;
    return Secret{*first, *second};
}

Result<Secret> create(const std::string& path) {
    const net::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.number() < 0) return failed(path);
    const Secret key = net::random_secret();
    const std::string line = fmt::format("{}{:016x}{:016x}\n", prefix, key[0], key[1]);
    if (::write(file.number(), line.data(), line.size()) != std::ssize(line) || ::fsync(file.number()) != 0) {
        const Failure failure = failed(path);
        ::unlink(path.c_str());
        return failure;
    }
    return key;
}

}  // namespace

Result<Secret> ticket_key_in(const std::string& path) {
    // O_NONBLOCK: a pipe without a writer would wait for ever.
    const net::Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (file.number() < 0) return errno == ENOENT ? create(path) : failed(path);
    struct stat found {};
    if (::fstat(file.number(), &found) != 0) return failed(path);
    // errors.md, forms, malformed: the path names a folder, a pipe or a device
    if (!S_ISREG(found.st_mode)) return malformed(path, "this is no file: name another");
    if ((found.st_mode & 077U) != 0) {
        // errors.md, forms, malformed: others can read the switch's key
        return malformed(path, "others may read or write this file: chmod 600 it");
    }
    std::array<char, line_bytes + 1> text{};
    const ssize_t size = ::read(file.number(), text.data(), text.size());
    const auto key = size < 0 ? std::nullopt : key_in({text.data(), static_cast<std::size_t>(size)});
    // errors.md, forms, malformed: another file, or a damaged one; remove it, and the switch makes a new one
    if (!key) return malformed(path, "this file is no state of a switch: name another, or remove it");
    return *key;
}

}  // namespace atp::switchd
