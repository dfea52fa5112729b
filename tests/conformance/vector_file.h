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

// The inputs of the fuzzer: each vector that is short enough for an input.
template <class Vector>
[[nodiscard]] std::vector<NamedBytes> corpus_of(const std::vector<Vector>& vectors) {
    constexpr std::size_t longest_input_bytes = 4096;
    std::vector<NamedBytes> corpus;
    for (const Vector& vector : vectors) {
        if (vector.bytes.size() <= longest_input_bytes) corpus.push_back({vector.description, vector.bytes});
    }
    return corpus;
}
// Names of the inputs that a folder of tests/fuzz/corpus lacks, or has with other bytes. Ignores other files in the
// folder.
[[nodiscard]] std::vector<std::string> outdated_inputs(std::string_view folder, std::span<const NamedBytes> corpus);

// main() of a program that writes `json` to stdout, or `corpus` as files into a folder: `--corpus FOLDER`.
[[nodiscard]] int write_vectors(std::span<char* const> arguments, const std::string& json,
                                std::span<const NamedBytes> corpus);

}  // namespace atp::conformance
