// SPDX-License-Identifier: Apache-2.0
#include "other_users.h"

#include <sys/socket.h>

namespace atp::test {

std::atomic<int> other_users{0};

}  // namespace atp::test

// The linker defines these names.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

int __real_getsockopt(int, int, int, void*, socklen_t*);

int __wrap_getsockopt(int socket, int level, int name, void* value, socklen_t* size) {
    const int outcome = __real_getsockopt(socket, level, name, value, size);
    if (outcome == 0 && level == SOL_SOCKET && name == SO_PEERCRED && atp::test::other_users > 0) {
        --atp::test::other_users;
        ++static_cast<ucred*>(value)->uid;
    }
    return outcome;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
