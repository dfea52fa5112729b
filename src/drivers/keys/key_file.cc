// SPDX-License-Identifier: Apache-2.0
#include "keys/key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "keys/secret_file.h"
#include "net/descriptor.h"
#include "net/random.h"

namespace atp::keys {
namespace {

constexpr std::size_t most_bytes = 4096;  // of a key file

void fill(std::span<std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t bits = net::random_bits();
        std::memcpy(bytes.data() + at, &bits, std::min(sizeof bits, bytes.size() - at));
    }
}

Failure system_failure(const std::string& path) { return fail_with_errno(Operation::open, errno, path); }

bool write_all(int file, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = ::write(file, text.data(), text.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return false;
        text.remove_prefix(static_cast<std::size_t>(count));
    }
    return fsync(file) == 0;
}

}  // namespace

crypto::SecretKey random_key() {
    crypto::SecretKey key;
    fill(key.bytes());
    return key;
}

crypto::Nonce random_nonce() {
    crypto::Nonce nonce{};
    fill(nonce);
    return nonce;
}

Result<crypto::TenantKey> read_key_file(const std::string& path) {
    const auto text = read_secret_file(path, most_bytes, "key file", ", and make a new key if one may have");
    if (!text) return tl::unexpected(text.error());
    auto key = crypto::parse_key((*text)->text());
    if (!key) key.error().peer = path;
    return key;
}

Result<std::optional<crypto::TenantKey>> read_key_of_ranks(const std::string& path) {
    const char* const variable = std::getenv("ATP_KEY_FILE");
    const std::string named = path.empty() && variable != nullptr ? variable : path;
    if (named.empty()) return std::nullopt;
    auto key = read_key_file(named);
    if (!key) return tl::unexpected(key.error());
    if (key->at_switch.empty()) return *std::move(key);
    // errors.md, forms, malformed: the file is for a switch, which must not open what ranks tell each other
    return fail(Operation::open, Reason::malformed, named, "this is a switch's key: ranks need the tenant's key file");
}

Result<void> write_key_file(const std::string& path, const crypto::TenantKey& key) {
    net::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!file.valid() && errno == EEXIST) {
        return fail(Operation::open, Reason::in_use, path,
                    // errors.md, calls, in use: of `atp key`
                    "the file exists, and a key is never overwritten: name a new file");
    }
    if (!file.valid()) return system_failure(path);
    std::string text = crypto::to_text(key);
    const bool written = write_all(file.number(), text);
    const int code = errno;
    crypto::wipe(text);
    if (written) return {};
    unlink(path.c_str());
    return fail_with_errno(Operation::open, code, path);
}

}  // namespace atp::keys
