// SPDX-License-Identifier: Apache-2.0
#include "wire/packet.h"

#include <array>
#include <cinttypes>
#include <cstdio>

#include "wire/job_text.h"

namespace atp::wire {

namespace {

std::string worker_to_string(std::uint16_t worker) { return worker == ATP_WORKER_ALL ? "all" : std::to_string(worker); }

}  // namespace

// tools/write_wire writes the names from src/machines/wire/wire.toml.
std::string_view to_string(DecodeError error) {
    switch (error) {
        case DecodeError::none: return "none";
        case DecodeError::truncated: return "truncated";
        case DecodeError::version: return "version";
        case DecodeError::oversized: return "oversized";
        case DecodeError::ragged: return "ragged";
        case DecodeError::type: return "type";
        case DecodeError::flags: return "flags";
        case DecodeError::lanes: return "lanes";
        case DecodeError::proof: return "proof";
        case DecodeError::hop: return "hop";
        case DecodeError::window: return "window";
        case DecodeError::token: return "token";
        case DecodeError::set: return "set";
        case DecodeError::part: return "part";
        default: return "unknown";
    }
}

std::string_view type_to_string(std::uint8_t type) {
    switch (type) {
        case ATP_TYPE_GRADIENT: return "GRADIENT";
        case ATP_TYPE_ACK: return "ACK";
        case ATP_TYPE_NACK: return "NACK";
        case ATP_TYPE_PROBE: return "PROBE";
        case ATP_TYPE_WAIT: return "WAIT";
        case ATP_TYPE_FLUSH: return "FLUSH";
        case ATP_TYPE_READY: return "READY";
        case ATP_TYPE_ACK_LIST: return "ACK_LIST";
        default: return "UNKNOWN";
    }
}

std::string_view dtype_to_string(std::uint8_t dtype) {
    switch (dtype) {
        case ATP_DTYPE_NONE: return "none";
        case ATP_DTYPE_INT32: return "int32";
        case ATP_DTYPE_FLOAT32: return "float32";
        case ATP_DTYPE_INT16: return "int16";
        case ATP_DTYPE_INT8: return "int8";
        default: return "unknown";
    }
}

std::string_view flag_to_string(std::uint16_t flag) {
    switch (flag) {
        case ATP_FLAG_RESEND: return "resend";
        case ATP_FLAG_BYPASS: return "bypass";
        case ATP_FLAG_COLLISION: return "collision";
        case ATP_FLAG_ECN: return "ecn";
        case ATP_FLAG_OVERFLOW: return "overflow";
        case ATP_FLAG_WHOLE: return "whole";
        case ATP_FLAG_AUDIT: return "audit";
        case ATP_FLAG_PLAIN: return "plain";
        case ATP_FLAG_ALTERNATE_FREE: return "alternate_free";
        case ATP_FLAG_ONE_SENDER: return "one_sender";
        case ATP_FLAG_ECN_DOWN: return "ecn_down";
        case ATP_FLAG_PROOF: return "proof";
        case ATP_FLAG_LAST_RANK: return "last_rank";
        default: return "unknown";
    }
}
// End of the written part.

std::string flags_to_string(std::uint16_t flags) {
    std::string text;
    const auto append = [&text](std::string_view name) {
        if (!text.empty()) text += ' ';
        text += name;
    };
    for (unsigned flag = 1; flag <= ATP_FLAG_ALL; flag <<= 1U) {
        if ((flags & flag) != 0) append(flag_to_string(static_cast<std::uint16_t>(flag)));
    }
    if ((flags & ~ATP_FLAG_ALL) != 0) append("unknown");
    return text;
}

std::string to_string(const atp_header& header, std::size_t lanes) {
    std::array<char, 400> line{};  // the longest line is below 340 characters
    std::snprintf(
        line.data(), line.size(),
        "%s job=%s token=0x%" PRIx64 " ch=%u seq=%" PRIu32 " w=%s hop=%u win=%u scale=%u idx=%" PRIu32 " arg=%" PRIu32
        " peer=%s sending=%u part=%u.%u form=%s %sx%zu set=0x%" PRIx32 "/0x%" PRIx32 ",0x%" PRIx32 "/0x%" PRIx32,
        type_to_string(header.type).data(), job_to_string(header.job).c_str(), header.token, unsigned{header.channel},
        header.seq, worker_to_string(header.worker).c_str(), unsigned{header.hop}, unsigned{header.window_log2},
        unsigned{header.scale}, header.index, header.argument, worker_to_string(header.peer).c_str(),
        unsigned{header.sending}, unsigned{atp_part_packet(&header)}, unsigned{atp_part_rank(&header)},
        dtype_to_string(atp_lanes_form(&header)).data(), dtype_to_string(atp_lanes_type(&header)).data(), lanes,
        header.bitmap0, header.mask0, header.bitmap1, header.mask1);
    std::string text = line.data();
    if (header.flags != 0) text += ' ' + flags_to_string(header.flags);
    return text;
}

}  // namespace atp::wire
