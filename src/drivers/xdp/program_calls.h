// SPDX-License-Identifier: Apache-2.0
// Calls to the kernel about the programs of the kernel switch: why it refuses to load one, and what one does with a
// frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

struct bpf_test_run_opts;

namespace atp::xdp {

// What the program did with a frame.
enum class Disposition : std::uint8_t { dropped, passed, sent_back, failed };

struct Outcome {
    Disposition disposition = Disposition::failed;
    std::vector<std::byte> frame;  // as the program left it
    std::uint32_t duration_ns = 0;
};

// `log`: what the verifier wrote.
[[nodiscard]] Failure load_failure(int code, std::string_view log);

// Runs the program of this descriptor on a copy of a frame. Without a disposition, which depends on the program's type.
[[nodiscard]] Result<Outcome> run_program(int code, std::span<const std::byte> frame, bpf_test_run_opts& options);

// Of a program at XDP, and of one at tc.
[[nodiscard]] Disposition disposition_of(std::uint32_t verdict);
[[nodiscard]] Disposition filter_disposition_of(std::uint32_t verdict);

}  // namespace atp::xdp
