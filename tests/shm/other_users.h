// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace atp::test {

// So many further questions for the process at the other end of a socket name another user. Only a privileged test
// could start a process of one.
extern std::atomic<int> other_users;

}  // namespace atp::test
