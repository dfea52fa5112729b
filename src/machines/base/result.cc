// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace atp {

bool Error::recoverable() const {
    switch (reason) {
        case Reason::malformed:
        case Reason::denied:
        case Reason::too_large:
        case Reason::unsupported:
        case Reason::version_mismatch:
        case Reason::mismatched:
        case Reason::closed:
        case Reason::forged: return false;
        case Reason::unknown_name:
        case Reason::in_use:
        case Reason::unreachable:
        case Reason::refused:
        case Reason::exhausted:
        case Reason::timed_out:
        case Reason::rejected: return true;
        case Reason::failed: return code == EAGAIN || code == EINTR;
    }
    return false;
}

std::string_view to_string(Operation operation) {
    switch (operation) {
        case Operation::parse: return "parse";
        case Operation::resolve: return "resolve";
        case Operation::open: return "open";
        case Operation::bind: return "bind";
        case Operation::connect: return "connect";
        case Operation::configure: return "configure";
        case Operation::send: return "send";
        case Operation::receive: return "receive";
        case Operation::wait: return "wait";
        case Operation::pin: return "pin";
        case Operation::rendezvous: return "rendezvous";
        case Operation::join: return "join";
        case Operation::all_reduce: return "all_reduce";
        case Operation::broadcast: return "broadcast";
        case Operation::barrier: return "barrier";
        case Operation::push: return "push";
        case Operation::pull: return "pull";
        case Operation::reduce_scatter: return "reduce_scatter";
        case Operation::all_gather: return "all_gather";
        case Operation::reduce: return "reduce";
    }
    return "unknown";
}

std::string_view to_string(Reason reason) {
    switch (reason) {
        case Reason::malformed: return "malformed";
        case Reason::unknown_name: return "unknown name";
        case Reason::denied: return "denied";
        case Reason::in_use: return "in use";
        case Reason::unreachable: return "unreachable";
        case Reason::refused: return "refused";
        case Reason::too_large: return "too large";
        case Reason::unsupported: return "unsupported";
        case Reason::exhausted: return "exhausted";
        case Reason::timed_out: return "timed out";
        case Reason::version_mismatch: return "version mismatch";
        case Reason::rejected: return "rejected";
        case Reason::mismatched: return "mismatched";
        case Reason::closed: return "closed";
        case Reason::failed: return "failed";
        case Reason::forged: return "forged";
    }
    return "unknown";
}

std::string to_string(const Error& error) {
    std::string line(to_string(error.operation));
    if (!error.peer.empty()) line += " " + error.peer;
    line += fmt::format(": {}", to_string(error.reason));
    if (error.code != 0) {
        const char* const name = strerrorname_np(error.code);
        line += fmt::format(" ({}, {})", name == nullptr ? std::to_string(error.code) : name,
                            std::strerror(error.code));  // NOLINT(concurrency-mt-unsafe): known errors are constants
    }
    if (error.elapsed != Duration::zero()) {
        const double seconds = static_cast<double>(error.elapsed.count()) / 1e9;
        line += seconds < 1 ? fmt::format(" after {:.3f} ms", seconds * 1e3) : fmt::format(" after {:.1f} s", seconds);
    }
    if (!error.text.empty()) line += ": " + error.text;
    return printable(line);  // it may quote what a user typed
}

Reason reason_of(int code) {
    switch (code) {
        case EACCES:
        case EPERM: return Reason::denied;
        case EADDRINUSE: return Reason::in_use;
        case EADDRNOTAVAIL:
        case EHOSTUNREACH:
        case ENETDOWN:
        case ENETUNREACH: return Reason::unreachable;
        case ECONNREFUSED: return Reason::refused;
        case EMSGSIZE: return Reason::too_large;
        case EAFNOSUPPORT:
        case ENOPROTOOPT:
        case ENOSYS:
        case EOPNOTSUPP:
        case EPROTONOSUPPORT: return Reason::unsupported;
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:
        case ENOSPC: return Reason::exhausted;
        case ETIMEDOUT: return Reason::timed_out;
        default: return Reason::failed;
    }
}

Failure fail(Operation operation, Reason reason, std::string peer, std::string text) {
    return Failure(Error{.operation = operation, .reason = reason, .peer = std::move(peer), .text = std::move(text)});
}

Failure fail_by_rank(Operation operation, Reason reason, std::uint32_t rank, std::string text) {
    return Failure(Error{.operation = operation,
                         .reason = reason,
                         .peer = list_of_ranks({&rank, 1}),
                         .text = std::move(text),
                         .ranks = {rank}});
}

std::string list_of_ranks(std::span<const std::uint32_t> ranks) {
    if (ranks.empty()) return {};
    return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

Failure fail_with_errno(Operation operation, int code, std::string peer, std::string text) {
    return Failure(Error{.operation = operation,
                         .reason = reason_of(code),
                         .code = code,
                         .peer = std::move(peer),
                         .text = std::move(text)});
}

}  // namespace atp
