// SPDX-License-Identifier: Apache-2.0
// What the committed files of vectors have in common: how bytes are spelt in them, and how they are read and written.
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

// A row spells bytes out as "hex" and counts the zeros that follow: long ends of zeros are not spelt out.
struct SpeltBytes {
    std::string hex;
    std::size_t bytes = 0;  // of those that are spelt out
    std::size_t zero_bytes_after_hex = 0;
};
[[nodiscard]] SpeltBytes spell(std::span<const std::byte> bytes, std::size_t spell_out_up_to);
[[nodiscard]] std::vector<std::byte> bytes_of(std::string_view hex, std::size_t zero_bytes_after_hex);

// "wire.json", as it is committed.
[[nodiscard]] std::string committed_text(std::string_view file);

// The main() of a program that writes `json` to stdout, or `corpus` as files into a folder: `--corpus FOLDER`.
[[nodiscard]] int write_vectors(std::span<char* const> arguments, const std::string& json,
                                std::span<const NamedBytes> corpus);

}  // namespace atp::conformance
