// SPDX-License-Identifier: Apache-2.0
// Counts the socket calls of the program under test and makes them fail on demand, to simulate other kernels, devices
// and sandboxes. The linker inserts it (--wrap), so the code under test is the shipped one.
#pragma once

#include <cstdint>

namespace atp::test {

struct SystemCalls {
    std::uint64_t sendmmsg = 0;
    std::uint64_t sendmsg = 0;
    std::uint64_t recvmmsg = 0;
    std::uint64_t recvmsg = 0;
    std::uint64_t looks = 0;      // epoll_pwait2 without a wait
    std::uint64_t sleeps = 0;     // epoll_pwait2 with a wait
    std::uint64_t segmented = 0;  // messages with a segment size

    // errno to fail with; 0: call the kernel
    int sendmmsg_fails = 0;
    int recvmmsg_fails = 0;
    int pwait2_fails = 0;
    int getaddrinfo_fails = 0;  // with this EAI_ code
    int getrandom_fails = 0;
    int getrandom_gives = -1;     // each byte; -1: those of the kernel
    int segmented_fails = 0;      // messages with a segment size
    unsigned segments_limit = 0;  // messages with more segments fail with EINVAL; 0: no limit
    int option_level = 0;         // level of the setsockopt that fails
    int option_name = 0;          // its option
    int option_fails = 0;
    int messages_until_full = -1;  // further messages that are accepted before EAGAIN; -1: no limit
    int interruptions = 0;         // sends, receives and draws that fail with EINTR first
};

// All threads share it; tests that set failures run one thread.
extern SystemCalls system_calls;

// Resets all counters and failures when a test begins and ends.
class WithSystemCalls {
  public:
    WithSystemCalls() { system_calls = {}; }
    ~WithSystemCalls() { system_calls = {}; }
    WithSystemCalls(const WithSystemCalls&) = delete;
    WithSystemCalls& operator=(const WithSystemCalls&) = delete;
};

}  // namespace atp::test
