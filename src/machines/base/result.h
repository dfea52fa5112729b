// SPDX-License-Identifier: Apache-2.0
// The one error type of all modules, and the Result that carries it.
//
// Result is tl::expected (Debian's libexpected-dev): the interface of C++23's std::expected, which the compilers that
// we support do not have yet, so that one line here changes when they do. Exceptions stay inside a module, except
// std::bad_alloc (docs/architecture.md#errors); a bool or an errno alone could not say who was meant and what to do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "base/time.h"

namespace atp {

enum class Operation : std::uint8_t {
    parse,
    resolve,
    open,
    bind,
    connect,
    configure,
    send,
    receive,
    wait,
    pin,
    rendezvous,  // ranks finding each other through a store
    join,        // of a job at a switch
    // Hashed into packets, so these numbers are part of the protocol: docs/protocol.md#purpose-of-an-operation.
    all_reduce = 12,
    broadcast = 13,
    barrier = 14,
    push = 15,
    pull = 16,  // sends nothing, so no packet carries its number
};

enum class Reason : std::uint8_t {
    malformed,     // the text or the value given
    unknown_name,  // no such host
    denied,        // by the kernel's permissions or a firewall
    in_use,        // the address is another socket's
    unreachable,   // no route, or no such local address
    refused,       // nobody listens there
    too_large,     // for the path or for a datagram
    unsupported,   // by this kernel
    exhausted,     // descriptors, memory, buffers
    timed_out,
    version_mismatch,  // the other end speaks another version
    rejected,          // the other end said no; `text` is its reason
    mismatched,        // ranks disagree about what they do together
    closed,            // it was ended by its owner, or an earlier error ended it
    failed,            // anything else: `code` says what
};

// Enough to act upon and to print. Copying allocates: errors are for set-up and for calls that cannot go on, and what
// happens packet by packet is counted instead (UdpCounters).
struct Error {
    Operation operation = Operation::open;
    Reason reason = Reason::failed;
    int code = 0;           // errno; 0 where no system call said it
    std::string peer = {};  // the address or name meant; empty where there is none
    Duration elapsed{};     // how long the operation took; zero for those that never wait
    std::string text = {};  // what was found, what is accepted, what would mend it

    // Trying again, unchanged and a little later, may succeed.
    [[nodiscard]] bool recoverable() const;
};

template <class Value>
using Result = tl::expected<Value, Error>;
using Failure = tl::unexpected<Error>;

[[nodiscard]] std::string_view to_string(Operation operation);
[[nodiscard]] std::string_view to_string(Reason reason);
// "bind 10.0.0.1:80: denied (EACCES, Permission denied): ports below 1024 need privilege".
[[nodiscard]] std::string to_string(const Error& error);

[[nodiscard]] Reason reason_of(int code);
[[nodiscard]] Failure fail(Operation operation, Reason reason, std::string peer, std::string text);
// For a system call that failed with `code`.
[[nodiscard]] Failure fail_with_errno(Operation operation, int code, std::string peer = {}, std::string text = {});

}  // namespace atp
