// SPDX-License-Identifier: Apache-2.0
#include "comm/job_name.h"

#include <cstdlib>

#include "base/text.h"
#include "wire/control.h"

namespace atp::comm {

std::string_view short_job_name(std::string_view name) {
    if (name.size() <= wire::max_job_name_bytes) return name;
    const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(name[at]) & 0xC0U) == 0x80U; };
    std::size_t end = wire::max_job_name_bytes;
    while (end != 0 && continues(end)) --end;
    return name.substr(0, end);
}

std::string job_name_of(const Options& options) {
    std::string name = options.job_name;
    for (const char* const variable : {"ATP_JOB_NAME", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"}) {
        const char* const value = std::getenv(variable);
        // torchrun's id of a job that nobody named
        if (name.empty() && value != nullptr && std::string_view(value) != "none") name = value;
    }
    return printable(short_job_name(name));
}

}  // namespace atp::comm
