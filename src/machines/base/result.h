// SPDX-License-Identifier: Apache-2.0
// The error type of all modules, and the Result that carries it.
//
// Result is tl::expected (Debian's libexpected-dev), which has the interface of C++23's std::expected. Once all
// supported compilers have std::expected, one line here changes. Exceptions stay inside a module, except
// std::bad_alloc (docs/develop/architecture.md#errors). An Error names the peer and the remedy, which a bool or an
// errno cannot do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

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
    rendezvous,  // ranks find each other through a store
    join,        // a job joins at a switch
    // Hashed into packets, so these numbers are part of the protocol: docs/spec/numbers.md#purpose-of-an-operation.
    all_reduce = 12,
    broadcast = 13,
    barrier = 14,
    push = 15,
    pull = 16,  // sends nothing, so no packet carries its number
    reduce_scatter = 17,
    all_gather = 18,
    reduce = 19,
};

enum class Reason : std::uint8_t {
    malformed,     // the text or the value is invalid
    unknown_name,  // no such host
    denied,        // denied by the kernel's permissions or a firewall
    in_use,        // another socket uses the address
    unreachable,   // no route, no answer, or no such local address
    refused,       // no socket listens at the address
    too_large,     // too large for the path or for a datagram
    unsupported,   // not supported by this kernel
    exhausted,     // no free descriptors, memory or buffers
    timed_out,
    version_mismatch,  // the other end uses another version
    rejected,          // the other end rejected the request; `text` is its reason
    mismatched,        // ranks disagree about the operation or its terms
    closed,            // closed by its owner or by an earlier error
    failed,            // any other error: see `code`
    forged,            // a switch changed what ranks sent, or a rank with their key did
};

// What a caller needs to act on an error and to print it. Copying allocates, so errors are for set-up and for calls
// that cannot continue. Events of single packets are counted instead (UdpCounters).
struct Error {
    Operation operation = Operation::open;
    Reason reason = Reason::failed;
    int code = 0;           // errno; 0 if no system call reported the error
    std::string peer = {};  // address, name or ranks that the error concerns, as users read it; empty: none
    Duration elapsed{};     // duration of the operation; zero for operations that never wait
    std::string text = {};  // what was found, what is accepted, how to fix it
    // For programs: the ranks at fault, and the address of a switch or server that failed with them.
    std::vector<std::uint32_t> ranks = {};
    std::string address = {};

    // A later retry with the same arguments may succeed.
    [[nodiscard]] bool recoverable() const;
    // The address or name at fault; empty: none, or only ranks are.
    [[nodiscard]] const std::string& place() const { return ranks.empty() ? peer : address; }
};

template <class Value>
using Result = tl::expected<Value, Error>;
using Failure = tl::unexpected<Error>;

[[nodiscard]] std::string_view to_string(Operation operation);
[[nodiscard]] std::string_view to_string(Reason reason);
// Example: "bind 10.0.0.1:80: denied (EACCES, Permission denied): ports below 1024 need privilege".
[[nodiscard]] std::string to_string(const Error& error);

[[nodiscard]] Reason reason_of(int code);
[[nodiscard]] Failure fail(Operation operation, Reason reason, std::string peer, std::string text);
[[nodiscard]] Failure fail_by_rank(Operation operation, Reason reason, std::uint32_t rank, std::string text);
// "rank 3", "ranks 1, 2"; empty: no ranks.
[[nodiscard]] std::string list_of_ranks(std::span<const std::uint32_t> ranks);
// For a system call that failed with `code`.
[[nodiscard]] Failure fail_with_errno(Operation operation, int code, std::string peer = {}, std::string text = {});

}  // namespace atp
