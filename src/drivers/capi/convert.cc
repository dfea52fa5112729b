// SPDX-License-Identifier: Apache-2.0
#include "capi/convert.h"

#include "base/version.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

#include "net/clock.h"

namespace atp::capi {
namespace {

constexpr std::int64_t longest_timeout_ms = std::int64_t{365} * 24 * 3600 * 1000;

// In the order of Reason. The numbers of the C interface never change, even if the enumeration does.
struct ReasonNumber {
    Reason reason;
    int number;
};
constexpr ReasonNumber reasons[] = {{Reason::malformed, ATP_REASON_MALFORMED},
                                    {Reason::unknown_name, ATP_REASON_UNKNOWN_NAME},
                                    {Reason::denied, ATP_REASON_DENIED},
                                    {Reason::in_use, ATP_REASON_IN_USE},
                                    {Reason::unreachable, ATP_REASON_UNREACHABLE},
                                    {Reason::refused, ATP_REASON_REFUSED},
                                    {Reason::too_large, ATP_REASON_TOO_LARGE},
                                    {Reason::unsupported, ATP_REASON_UNSUPPORTED},
                                    {Reason::exhausted, ATP_REASON_EXHAUSTED},
                                    {Reason::timed_out, ATP_REASON_TIMED_OUT},
                                    {Reason::version_mismatch, ATP_REASON_VERSION_MISMATCH},
                                    {Reason::rejected, ATP_REASON_REJECTED},
                                    {Reason::mismatched, ATP_REASON_MISMATCHED},
                                    {Reason::closed, ATP_REASON_CLOSED},
                                    {Reason::failed, ATP_REASON_FAILED}};

int number_of(Reason reason) {
    const auto* const found = std::ranges::find(reasons, reason, &ReasonNumber::reason);
    return found == std::end(reasons) ? ATP_REASON_FAILED : found->number;
}

int number_of(Operation operation) {
    switch (operation) {
        case Operation::rendezvous: return ATP_OPERATION_RENDEZVOUS;
        case Operation::join: return ATP_OPERATION_JOIN;
        case Operation::all_reduce: return ATP_OPERATION_ALL_REDUCE;
        case Operation::broadcast: return ATP_OPERATION_BROADCAST;
        case Operation::barrier: return ATP_OPERATION_BARRIER;
        case Operation::push: return ATP_OPERATION_PUSH;
        case Operation::pull: return ATP_OPERATION_PULL;
        default: return ATP_OPERATION_OTHER;
    }
}

void copy_text(std::string_view text, std::span<char> to) {
    const std::size_t size = std::min(text.size(), to.size() - 1);
    std::copy_n(text.data(), size, to.data());
    to[size] = '\0';
}

std::string text_of(const char* text, const char* otherwise) { return text == nullptr ? otherwise : text; }

std::chrono::milliseconds timeout_from(std::int64_t milliseconds) {
    return std::chrono::milliseconds(std::clamp<std::int64_t>(milliseconds, 0, longest_timeout_ms));
}

}  // namespace

Error malformed(const char* text) { return {.operation = Operation::parse, .reason = Reason::malformed, .text = text}; }

int report(const Error& error, atp_error* to) {
    const int reason = number_of(error.reason);
    if (to == nullptr) return reason;
    to->operation = number_of(error.operation);
    to->reason = reason;
    to->elapsed_ms = std::chrono::duration<double, std::milli>(error.elapsed).count();
    copy_text(error.peer, to->peer);
    std::string text = error.text;
    if (error.code != 0) {
        // The system's text for the error number precedes the other text.
        std::array<char, 128> buffer{};
        const std::string system = strerror_r(error.code, buffer.data(), buffer.size());
        text = text.empty() ? system : system + ": " + text;
    }
    copy_text(text, to->text);
    return reason;
}

Reason reason_from(int reason) {
    const auto* const found = std::ranges::find(reasons, reason, &ReasonNumber::number);
    return found == std::end(reasons) ? Reason::failed : found->reason;
}

// If the program is older than this library, its struct is shorter, and the remaining options keep their defaults. If
// the program is newer, its struct may be longer, but all unknown options must be zero.
Result<comm::Options> options_from(const atp_options* options) {
    if (options == nullptr || options->struct_size < sizeof options->struct_size) {
        return tl::unexpected(malformed("options that atp_options_init() has not seen"));
    }
    atp_options known;
    atp_options_init(&known, sizeof known);
    std::memcpy(&known, options, std::min(options->struct_size, sizeof known));
    if (options->struct_size > sizeof known) {
        const auto* const bytes = reinterpret_cast<const std::byte*>(options);
        const std::span<const std::byte> rest(bytes + sizeof known, options->struct_size - sizeof known);
        if (std::ranges::any_of(rest, [](std::byte byte) { return byte != std::byte{0}; })) {
            return tl::unexpected(malformed("options that this version of the library does not know"));
        }
    }
    if (known.server < ATP_SERVER_ON_SWITCH || known.server > ATP_SERVER_DEDICATED) {
        return tl::unexpected(malformed("a place of the server that is none"));
    }
    if (known.scaling < ATP_SCALING_FIXED || known.scaling > ATP_SCALING_DYNAMIC || known.lane_type < ATP_LANE_INT32 ||
        known.lane_type > ATP_LANE_INT16) {
        return tl::unexpected(malformed("a scaling or a type of lanes that is none"));
    }
    if (known.reserved_1 != 1) {
        return tl::unexpected(malformed("reserved_1 is not 1: leave it as atp_options_init() wrote it"));
    }
    if ((known.dedicated_servers == nullptr && known.dedicated_server_count != 0) ||
        (known.cores == nullptr && known.core_count != 0)) {
        return tl::unexpected(malformed("a list of servers or cores that is not there"));
    }
    comm::Options result;
    result.switch_address = text_of(known.switch_address, "");
    result.channels = known.channels;
    result.lanes = known.lanes;
    result.window = known.window;
    result.scale = known.scale;
    result.audit = known.audit != 0;
    result.scaling = static_cast<tensor::Scaling>(known.scaling);
    result.lane_type = static_cast<tensor::LaneType>(known.lane_type);
    result.rack = text_of(known.rack, "");
    const auto multicast = control::parse_multicast(text_of(known.multicast, "off"));
    if (!multicast) return tl::unexpected(malformed("multicast that is neither off, on nor groups of IPv4"));
    result.multicast = *multicast;
    result.server = static_cast<comm::ServerPlace>(known.server);
    for (std::size_t i = 0; i < known.dedicated_server_count; ++i) {
        result.dedicated_servers.push_back(text_of(known.dedicated_servers[i], ""));
    }
    result.join_timeout = timeout_from(known.join_timeout_ms);
    result.timeout = timeout_from(known.timeout_ms);
    result.name = text_of(known.name, "atp");
    result.generation = known.generation;
    result.spin = std::chrono::microseconds(std::clamp<std::int64_t>(known.spin_us, 0, longest_timeout_ms));
    result.cores.assign(known.cores, known.cores + known.core_count);
    result.busy_poll_us = known.busy_poll_us;
    result.socket_buffer_bytes = known.socket_buffer_bytes;
    return result;
}

std::optional<numeric::ElementType> element_from(int element) {
    switch (element) {
        case ATP_ELEMENT_FLOAT32: return numeric::ElementType::float32;
        case ATP_ELEMENT_FLOAT64: return numeric::ElementType::float64;
        case ATP_ELEMENT_FLOAT16: return numeric::ElementType::float16;
        case ATP_ELEMENT_BFLOAT16: return numeric::ElementType::bfloat16;
        case ATP_ELEMENT_INT32: return numeric::ElementType::int32;
        case ATP_ELEMENT_INT64: return numeric::ElementType::int64;
        default: return std::nullopt;
    }
}

std::optional<comm::Reduction> reduction_from(int reduction) {
    switch (reduction) {
        case ATP_REDUCTION_SUM: return comm::Reduction::sum;
        case ATP_REDUCTION_AVERAGE: return comm::Reduction::average;
        default: return std::nullopt;
    }
}

Time deadline_from(std::int64_t timeout_ms) { return timeout_ms <= 0 ? never : net::now() + timeout_from(timeout_ms); }

}  // namespace atp::capi

extern "C" {

const char* atp_version(void) { return atp::software_version(); }

const char* atp_reason_name(int reason) {
    return reason == ATP_REASON_NONE ? "none" : to_string(atp::capi::reason_from(reason)).data();
}

const char* atp_operation_name(int operation) {
    switch (operation) {
        case ATP_OPERATION_RENDEZVOUS: return to_string(atp::Operation::rendezvous).data();
        case ATP_OPERATION_JOIN: return to_string(atp::Operation::join).data();
        case ATP_OPERATION_ALL_REDUCE: return to_string(atp::Operation::all_reduce).data();
        case ATP_OPERATION_BROADCAST: return to_string(atp::Operation::broadcast).data();
        case ATP_OPERATION_BARRIER: return to_string(atp::Operation::barrier).data();
        case ATP_OPERATION_PUSH: return to_string(atp::Operation::push).data();
        case ATP_OPERATION_PULL: return to_string(atp::Operation::pull).data();
        default: return "other";
    }
}

void atp_options_init(struct atp_options* options, size_t struct_size) {
    const atp::comm::Options defaults;
    atp_options known{};
    known.struct_size = struct_size;
    known.channels = defaults.channels;
    known.scale = defaults.scale;
    known.reserved_1 = 1;
    known.join_timeout_ms = std::chrono::duration_cast<std::chrono::milliseconds>(defaults.join_timeout).count();
    known.timeout_ms = std::chrono::duration_cast<std::chrono::milliseconds>(defaults.timeout).count();
    known.name = "atp";
    known.socket_buffer_bytes = defaults.socket_buffer_bytes;
    std::memset(options, 0, struct_size);
    std::memcpy(options, &known, std::min(struct_size, sizeof known));
}

}  // extern "C"
