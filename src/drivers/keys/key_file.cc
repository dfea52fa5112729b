// SPDX-License-Identifier: Apache-2.0
#include "keys/key_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "net/descriptor.h"
#include "net/random.h"

namespace atp::keys {
namespace {

constexpr std::size_t most_bytes = 4096;  // of a key file
constexpr mode_t others = S_IRWXG | S_IRWXO;

void fill(std::span<std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t bits = net::random_bits();
        std::memcpy(bytes.data() + at, &bits, std::min(sizeof bits, bytes.size() - at));
    }
}

Failure system_failure(const std::string& path) { return fail_with_errno(Operation::open, errno, path); }

// The text of a secret file, which wipes itself.
class SecretText {
  public:
    SecretText() { text_.resize(most_bytes); }  // never grows, so it leaves no copy behind
    ~SecretText() { crypto::wipe(text_); }
    SecretText(const SecretText&) = delete;
    SecretText& operator=(const SecretText&) = delete;

    // False: see errno; EFBIG: the file is longer than a key file.
    [[nodiscard]] bool read(int file) {
        for (std::size_t size = 0; size < text_.size();) {
            const ssize_t count = ::read(file, text_.data() + size, text_.size() - size);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return false;
            if (count == 0) {
                size_ = size;
                return true;
            }
            size += static_cast<std::size_t>(count);
        }
        errno = EFBIG;
        return false;
    }
    [[nodiscard]] std::string_view text() const { return std::string_view(text_).substr(0, size_); }

  private:
    std::string text_;
    std::size_t size_ = 0;
};

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
    // O_NONBLOCK: a pipe without a writer would wait for ever.
    const net::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat state {};
    if (!file.valid() || fstat(file.number(), &state) != 0) return system_failure(path);
    if (!S_ISREG(state.st_mode)) {
        // errors.md, forms, malformed: the path names a folder, a pipe or a device
        return fail(Operation::open, Reason::malformed, path, "no file: name one that `atp key new` wrote");
    }
    if ((state.st_mode & others) != 0) {
        return fail(Operation::open, Reason::denied, path,
                    // errors.md, forms, denied
                    fmt::format("the key file has mode {:o}, so other users may read it: run chmod 600 {}, and make a "
                                "new key if one may have",
                                state.st_mode & ALLPERMS, path));
    }
    SecretText text;
    if (!text.read(file.number())) return system_failure(path);
    auto key = crypto::parse_key(text.text());
    if (!key) key.error().peer = path;
    return key;
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
