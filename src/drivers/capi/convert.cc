// SPDX-License-Identifier: Apache-2.0
#include "capi/convert.h"

#include "base/version.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "capi/option_fields.h"
#include "comm/option_table.h"
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
                                    {Reason::failed, ATP_REASON_FAILED},
                                    {Reason::forged, ATP_REASON_FORGED}};

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
        case Operation::reduce_scatter: return ATP_OPERATION_REDUCE_SCATTER;
        case Operation::all_gather: return ATP_OPERATION_ALL_GATHER;
        case Operation::reduce: return ATP_OPERATION_REDUCE;
        default: return ATP_OPERATION_OTHER;
    }
}

void copy_text(std::string_view text, std::span<char> to) {
    const std::size_t size = std::min(text.size(), to.size() - 1);
    std::copy_n(text.data(), size, to.data());
    to[size] = '\0';
}

std::chrono::milliseconds timeout_from(std::int64_t milliseconds) {
    return std::chrono::milliseconds(std::clamp<std::int64_t>(milliseconds, 0, longest_timeout_ms));
}

// One option in C and in C++. `problem` is the reason why the value in C has no meaning.
template <class Value>
struct OptionPair {
    const comm::OptionRow& row;
    Value& value;
    std::string& problem;
};

template <class Number>
requires std::is_arithmetic_v<Number> &&
    (!std::same_as<Number, bool>)void read_field(const atp_options& from, Number atp_options::*field,
                                                 const OptionPair<Number>& to) {
    to.value = from.*field;
}
void read_field(const atp_options& from, std::int32_t atp_options::*field, const OptionPair<bool>& to) {
    to.value = from.*field != 0;
}
template <class Choice>
requires std::is_enum_v<Choice>
void read_field(const atp_options& from, std::int32_t atp_options::*field, const OptionPair<Choice>& to) {
    to.value = static_cast<Choice>(from.*field);
    if (static_cast<std::int32_t>(to.value) == from.*field) return;  // communicators check the value
    to.problem = comm::option_refusal(to.row, std::to_string(from.*field));
}
void read_field(const atp_options& from, const char* atp_options::*field, const OptionPair<std::string>& to) {
    to.value = from.*field == nullptr ? to.row.fallback : from.*field;
}
void read_field(const atp_options& from, const char* atp_options::*field, const OptionPair<control::Multicast>& to) {
    const auto parsed = control::parse_multicast(from.*field == nullptr ? to.row.fallback : from.*field);
    if (!parsed) to.problem = comm::option_refusal(to.row, from.*field);
    to.value = parsed.value_or(control::Multicast{});
}
template <class Element, class Value>
void read_field(const atp_options& from, const CList<Element>& list, const OptionPair<std::vector<Value>>& to) {
    const std::size_t count = from.*list.count;
    if (from.*list.elements == nullptr) {
        if (count != 0) to.problem = std::string(to.row.name) + ": NULL is no list of " + std::to_string(count);
        return;
    }
    to.value.clear();
    for (const Element& element : std::span(from.*list.elements, count)) {
        if constexpr (std::is_pointer_v<Element>) {
            to.value.emplace_back(element == nullptr ? "" : element);
        } else {
            to.value.push_back(element);
        }
    }
}
template <class Unit>
void read_field(const atp_options& from, const CTime<Unit>& time, const OptionPair<Duration>& to) {
    const std::int64_t most = longest_timeout_ms * (std::chrono::milliseconds(1) / time.unit);
    to.value = time.unit * std::clamp<std::int64_t>(from.*time.number, 0, most);
}

// The defaults. Lists and texts without a default are NULL.
template <class Number, class Value>
requires std::is_arithmetic_v<Number>
void write_field(atp_options& to, Number atp_options::*field, const comm::OptionRow& /*row*/, const Value& value) {
    to.*field = static_cast<Number>(value);
}
void write_field(atp_options& to, const char* atp_options::*field, const comm::OptionRow& row,
                 const std::string& value) {
    to.*field = value.empty() ? nullptr : row.fallback.data();  // a literal
}
void write_field(atp_options& /*to*/, const char* atp_options::* /*field*/, const comm::OptionRow& /*row*/,
                 const control::Multicast& /*value*/) {}
template <class Element, class Value>
void write_field(atp_options& /*to*/, const CList<Element>& /*list*/, const comm::OptionRow& /*row*/,
                 const std::vector<Value>& /*value*/) {}
template <class Unit>
void write_field(atp_options& to, const CTime<Unit>& time, const comm::OptionRow& /*row*/, Duration value) {
    to.*time.number = value / time.unit;
}

static_assert(static_cast<int>(observe::Severity::trace) == ATP_SEVERITY_TRACE);
static_assert(static_cast<int>(observe::Severity::error) == ATP_SEVERITY_ERROR);

}  // namespace

Error malformed(std::string text) {
    return {.operation = Operation::parse, .reason = Reason::malformed, .text = std::move(text)};
}

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
    std::ranges::fill(to->reserved, '\0');
    return reason;
}

Reason reason_from(int reason) {
    const auto* const found = std::ranges::find(reasons, reason, &ReasonNumber::number);
    return found == std::end(reasons) ? Reason::failed : found->reason;
}

bool sets_beyond(const void* object, std::size_t known, std::size_t size) {
    const auto* const bytes = static_cast<const std::byte*>(object);
    return size > known &&
           std::any_of(bytes + known, bytes + size, [](std::byte byte) { return byte != std::byte{0}; });
}

// If the program is older than this library, its struct is shorter, and options beyond its end keep their defaults. If
// the program is newer, its struct may be longer, but every option that this library does not know must be zero.
Result<comm::Options> options_from(const atp_options* options) {
    if (options == nullptr || options->struct_size < sizeof options->struct_size) {
        // errors.md, calls, malformed
        return tl::unexpected(malformed("`options` is NULL or not initialized: call atp_options_init() first"));
    }
    atp_options known;
    atp_options_init(&known, sizeof known);
    std::memcpy(&known, options, std::min(options->struct_size, sizeof known));
    if (sets_beyond(options, sizeof known, options->struct_size)) {
        return tl::unexpected(
            // errors.md, calls, malformed: the program was compiled with a newer atp.h
            malformed("`options` sets fields that this version of the library lacks: set them to 0, or install a "
                      "newer libatp"));
    }
    if (known.reserved_1 != 1) {
        // errors.md, calls, malformed
        return tl::unexpected(malformed("reserved_1 is not 1: leave it as atp_options_init() wrote it"));
    }
    comm::Options result;
    std::string problem;
    visit_options([&](std::string_view name, const auto& field, const auto own) {
        if (problem.empty()) read_field(known, field, OptionPair{*comm::find_option(name), result.*own, problem});
    });
    if (!problem.empty()) return tl::unexpected(malformed(std::move(problem)));
    if (known.log_receiver != nullptr) {
        result.log_receiver = [receiver = known.log_receiver, context = known.log_context](observe::Severity severity,
                                                                                           std::string_view line) {
            receiver(context, static_cast<int>(severity), std::string(line).c_str());
        };
    }
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

std::optional<numeric::FoldOperation> fold_operation_from(int reduction) {
    switch (reduction) {
        case ATP_REDUCTION_MINIMUM: return numeric::FoldOperation::minimum;
        case ATP_REDUCTION_MAXIMUM: return numeric::FoldOperation::maximum;
        case ATP_REDUCTION_PRODUCT: return numeric::FoldOperation::product;
        case ATP_REDUCTION_AND: return numeric::FoldOperation::bit_and;
        case ATP_REDUCTION_OR: return numeric::FoldOperation::bit_or;
        case ATP_REDUCTION_XOR: return numeric::FoldOperation::bit_xor;
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
        case ATP_OPERATION_REDUCE_SCATTER: return to_string(atp::Operation::reduce_scatter).data();
        case ATP_OPERATION_ALL_GATHER: return to_string(atp::Operation::all_gather).data();
        case ATP_OPERATION_REDUCE: return to_string(atp::Operation::reduce).data();
        default: return "other";
    }
}

void atp_options_init(struct atp_options* options, size_t struct_size) {
    const atp::comm::Options defaults;
    atp_options known{};
    known.struct_size = struct_size;
    known.reserved_1 = 1;
    atp::capi::visit_options([&](std::string_view name, const auto& field, const auto own) {
        atp::capi::write_field(known, field, *atp::comm::find_option(name), defaults.*own);
    });
    std::memset(options, 0, struct_size);
    std::memcpy(options, &known, std::min(struct_size, sizeof known));
}

}  // extern "C"
