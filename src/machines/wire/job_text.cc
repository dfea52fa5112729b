// SPDX-License-Identifier: Apache-2.0
#include "wire/job_text.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace atp::wire {

std::string job_to_string(std::uint32_t job) { return fmt::format("{:08x}", job); }

std::optional<std::uint32_t> parse_job(std::string_view text) {
    constexpr std::size_t digits = 8;
    std::uint32_t job = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, job, 16);
    if (text.size() != digits || read.ec != std::errc() || read.ptr != end) return std::nullopt;
    return job;
}

}  // namespace atp::wire
