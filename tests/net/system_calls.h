// SPDX-License-Identifier: Apache-2.0
// The socket calls of the program under test, counted, and failing on demand: what other kernels, devices and sandboxes
// do, this one does when asked. The linker puts it in between (--wrap); the code under test is the shipped one.
#pragma once

#include <cstdint>

namespace atp::test {

struct SystemCalls {
    std::uint64_t sendmmsg = 0;
    std::uint64_t sendmsg = 0;
    std::uint64_t recvmmsg = 0;
    std::uint64_t recvmsg = 0;
    std::uint64_t looks = 0;      // epoll_pwait2 that does not wait
    std::uint64_t sleeps = 0;     // and that does
    std::uint64_t segmented = 0;  // messages that were handed over with a segment size

    // errno to answer with; 0: as the kernel would
    int sendmmsg_fails = 0;
    int recvmmsg_fails = 0;
    int pwait2_fails = 0;
    int getaddrinfo_fails = 0;    // with this EAI_ code
    int segmented_fails = 0;      // messages with a segment size
    unsigned segments_limit = 0;  // those with more segments than this fail with EINVAL; 0: no limit
    int option_level = 0;         // setsockopt of this
    int option_name = 0;          // and this
    int option_fails = 0;
    int messages_until_full = -1;  // so many messages are taken, then EAGAIN; -1: no limit
    int interruptions = 0;         // so many sends and receives fail with EINTR first
};

// Of all threads together; tests that set failures run one thread.
extern SystemCalls system_calls;

// Puts everything back when a test ends.
class WithSystemCalls {
  public:
    WithSystemCalls() { system_calls = {}; }
    ~WithSystemCalls() { system_calls = {}; }
    WithSystemCalls(const WithSystemCalls&) = delete;
    WithSystemCalls& operator=(const WithSystemCalls&) = delete;
};

}  // namespace atp::test
