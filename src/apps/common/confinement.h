// SPDX-License-Identifier: Apache-2.0
// What a running service may still ask of the kernel, should somebody take it over with a packet.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace atp::apps {

// What a system call does that a confined process does not need.
enum class Confinement : std::uint8_t {
    refuse,  // fails with EPERM
    kill,    // ends the process
    off,     // what it would do without confinement
};

// The tools that look for errors in memory make calls of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr Confinement usual_confinement = Confinement::off;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
inline constexpr Confinement usual_confinement = Confinement::off;
#else
inline constexpr Confinement usual_confinement = Confinement::refuse;
#endif
#else
inline constexpr Confinement usual_confinement = Confinement::refuse;
#endif

inline constexpr std::string_view confinement_forms = "refuse, kill or off";
[[nodiscard]] std::optional<Confinement> confinement_of(std::string_view word);

// Keeps no capability of this thread except these (CAP_NET_ADMIN, ...), as far as it has them. Threads that it starts
// later have no more. If the system refuses the call, the thread keeps all of them.
void keep_capabilities(std::initializer_list<unsigned> kept);

// As keep_capabilities({}), but for a thread that goes on using open maps of BPF. Keeps CAP_BPF on kernels before Linux
// 5.19, which ask for it.
void keep_use_of_maps();

// From now on all threads can only make the system calls that a running service needs: no new program, no new process,
// no executable memory, no other kinds of sockets. Cannot be undone.
//
// Failure: returns why the kernel refuses it, and nothing changed. Call it after everything was opened and all threads
// run.
[[nodiscard]] Result<void> confine_system_calls(Confinement confinement);

}  // namespace atp::apps
