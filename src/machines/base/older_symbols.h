// SPDX-License-Identifier: Apache-2.0
/*
 * Makes a wheel load on hosts whose libstdc++ is older than the compiler's, such as RHEL 9 and Amazon Linux 2023.
 * Include this in a source that waits on a std::condition_variable or a std::condition_variable_any, or
 * tools/build_wheel refuses the result.
 *
 * wait() got a new version in libstdc++ 12, which differs in an exception specification only. The version of libstdc++
 * 4.4 is in every libstdc++.
 */
#pragma once

#if defined(__x86_64__) && defined(__linux__)
__asm__(
    ".symver _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE,"
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
#endif
