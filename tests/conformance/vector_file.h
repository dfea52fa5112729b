// SPDX-License-Identifier: Apache-2.0
// Shared by the committed files of vectors: how they write bytes, and how tests read and write them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atp::conformance {

struct NamedBytes {
    std::string description;
    std::vector<std::byte> bytes;
};

// A row writes bytes as "hex" and counts the zeros that follow, so that long runs of zeros stay short.
struct SpeltBytes {
    std::string hex;
    std::size_t bytes = 0;  // number of bytes in the hex text
    std::size_t zero_bytes_after_hex = 0;
};
[[nodiscard]] SpeltBytes spell(std::span<const std::byte> bytes, std::size_t spell_out_up_to);
[[nodiscard]] std::vector<std::byte> bytes_of(std::string_view hex, std::size_t zero_bytes_after_hex);

// "wire.json" as committed.
[[nodiscard]] std::string committed_text(std::string_view file);

// main() of a program that writes `json` to stdout, or `corpus` as files into a folder: `--corpus FOLDER`.
[[nodiscard]] int write_vectors(std::span<char* const> arguments, const std::string& json,
                                std::span<const NamedBytes> corpus);

}  // namespace atp::conformance
