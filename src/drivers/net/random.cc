// SPDX-License-Identifier: Apache-2.0
#include "net/random.h"

#include <sys/random.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

namespace atp::net {

std::uint64_t random_bits() {
    std::array<std::byte, sizeof(std::uint64_t)> bits{};
    for (std::span<std::byte> left(bits); !left.empty();) {
        const ssize_t got = getrandom(left.data(), left.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            std::fprintf(stderr, "atp: the kernel gives no random bits: getrandom: %s\n", strerrordesc_np(errno));
            std::abort();
        }
        left = left.subspan(static_cast<std::size_t>(got));
    }
    return std::bit_cast<std::uint64_t>(bits);
}

}  // namespace atp::net
