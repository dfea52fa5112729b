// SPDX-License-Identifier: Apache-2.0
#include "wire/packet.h"

#include <array>
#include <cinttypes>
#include <cstdio>

namespace atp::wire {

namespace {

constexpr std::array<std::string_view, decode_error_count> error_names = {
    "none", "truncated", "version", "oversized", "ragged", "type", "flags", "dtype", "hop", "window", "token", "set"};

// Indexed by the type or the dtype on the wire; there is no type 0.
constexpr std::array<std::string_view, ATP_TYPE_LAST + 1> type_names = {"UNKNOWN", "GRADIENT", "ACK",  "NACK",
                                                                        "PROBE",   "WAIT",     "FLUSH"};
constexpr std::array<std::string_view, ATP_DTYPE_LAST + 1> dtype_names = {"none", "int32", "float32", "int16"};

// Indexed by the number of the flag's bit.
constexpr std::array<std::string_view, 8> flag_names = {"resend",   "bypass", "collision", "ecn",
                                                        "overflow", "whole",  "audit",     "plain"};
static_assert((1u << flag_names.size()) - 1 == ATP_FLAG_ALL);

template <std::size_t count>
std::string_view name_or(const std::array<std::string_view, count>& names, std::size_t at, std::string_view otherwise) {
    return at < count ? names[at] : otherwise;
}

std::string worker_to_string(std::uint16_t worker) { return worker == ATP_WORKER_ALL ? "all" : std::to_string(worker); }

}  // namespace

std::string_view to_string(DecodeError error) {
    return name_or(error_names, static_cast<std::size_t>(error), "unknown");
}

std::string_view type_to_string(std::uint8_t type) { return name_or(type_names, type, "UNKNOWN"); }

std::string_view dtype_to_string(std::uint8_t dtype) { return name_or(dtype_names, dtype, "unknown"); }

std::string flags_to_string(std::uint16_t flags) {
    std::string text;
    const auto append = [&text](std::string_view name) {
        if (!text.empty()) text += ' ';
        text += name;
    };
    for (std::size_t bit = 0; bit < flag_names.size(); ++bit) {
        if ((unsigned{flags} >> bit & 1u) != 0) append(flag_names[bit]);
    }
    if ((flags & ~ATP_FLAG_ALL) != 0) append("unknown");
    return text;
}

std::string to_string(const atp_header& header, std::size_t lanes) {
    std::array<char, 320> line{};  // the longest line is below 260 characters
    std::snprintf(line.data(), line.size(),
                  "%s job=%" PRIu32 " token=0x%" PRIx32 " ch=%u seq=%" PRIu32 " w=%s hop=%u win=%u idx=%" PRIu32
                  " arg=%" PRIu32 " %sx%zu set=0x%" PRIx32 "/0x%" PRIx32 ",0x%" PRIx32 "/0x%" PRIx32,
                  type_to_string(header.type).data(), header.job, header.token, unsigned{header.channel}, header.seq,
                  worker_to_string(header.worker).c_str(), unsigned{header.hop}, unsigned{header.window_log2},
                  header.index, header.argument, dtype_to_string(header.dtype).data(), lanes, header.bitmap0,
                  header.mask0, header.bitmap1, header.mask1);
    std::string text = line.data();
    if (header.flags != 0) text += ' ' + flags_to_string(header.flags);
    return text;
}

}  // namespace atp::wire
