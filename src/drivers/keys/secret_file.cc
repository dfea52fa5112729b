// SPDX-License-Identifier: Apache-2.0
#include "keys/secret_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "net/descriptor.h"

namespace atp::keys {
namespace {

constexpr mode_t others = S_IRWXG | S_IRWXO;

}  // namespace

bool SecretText::read(int file) {
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

Result<std::unique_ptr<SecretText>> read_secret_file(const std::string& path, std::size_t most_bytes,
                                                     std::string_view noun, std::string_view remedy) {
    // O_NONBLOCK: a pipe without a writer would wait for ever.
    const net::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat state {};
    if (!file.valid() || fstat(file.number(), &state) != 0) return fail_with_errno(Operation::open, errno, path);
    if (!S_ISREG(state.st_mode)) {
        // errors.md, forms, malformed: the path names a folder, a pipe or a device
        return fail(Operation::open, Reason::malformed, path, fmt::format("this is no file: name a {}", noun));
    }
    if ((state.st_mode & others) != 0) {
        return fail(Operation::open, Reason::denied, path,
                    // errors.md, forms, denied: if others may have read a key, make a new one
                    fmt::format("the {} has mode {:o}, so other users may read it: run chmod 600 {}{}", noun,
                                state.st_mode & ALLPERMS, path, remedy));
    }
    auto text = std::make_unique<SecretText>(most_bytes);
    if (!text->read(file.number())) return fail_with_errno(Operation::open, errno, path);
    return text;
}

}  // namespace atp::keys
