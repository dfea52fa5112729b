// SPDX-License-Identifier: Apache-2.0
// Common functions for the committed files of vectors: the form of bytes in JSON, and reading and writing the files.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atp::conformance {

struct NamedBytes {
    std::string description;
    std::vector<std::byte> bytes;
};

// The form of bytes in a row: hex text, then the number of zeros after it. A long run of zeros thus stays short.
struct SpeltBytes {
    std::string hex;
    std::size_t bytes = 0;  // number of bytes in the hex text
    std::size_t zero_bytes_after_hex = 0;
};
[[nodiscard]] SpeltBytes spell(std::span<const std::byte> bytes, std::size_t spell_out_up_to);
[[nodiscard]] std::vector<std::byte> bytes_of(std::string_view hex, std::size_t zero_bytes_after_hex);

// The text of a file: an array with one vector per line, so that a diff shows the changed vectors.
template <class Vector>
[[nodiscard]] std::string text_of(const std::vector<Vector>& vectors) {
    std::string text;
    for (const Vector& vector : vectors) {
        text += text.empty() ? "[\n" : ",\n";
        text += to_json(vector).dump();
    }
    return text + "\n]\n";
}
// Text of a committed file, such as "wire.json".
[[nodiscard]] std::string committed_text(std::string_view file);

// Inputs of a fuzzer: each vector of at most `longest_input_bytes`.
template <class Vector>
[[nodiscard]] std::vector<NamedBytes> corpus_of(const std::vector<Vector>& vectors) {
    constexpr std::size_t longest_input_bytes = 4096;
    std::vector<NamedBytes> corpus;
    for (const Vector& vector : vectors) {
        if (vector.bytes.size() <= longest_input_bytes) corpus.push_back({vector.description, vector.bytes});
    }
    return corpus;
}
// Names of the inputs of `corpus` that are missing in tests/fuzz/corpus/`folder`, or have other bytes there. Other
// files in the folder are ignored.
[[nodiscard]] std::vector<std::string> outdated_inputs(std::string_view folder, std::span<const NamedBytes> corpus);

// main() of a program that writes `json` to stdout, or `corpus` as files into a folder: `--corpus FOLDER`.
[[nodiscard]] int write_vectors(std::span<char* const> arguments, const std::string& json,
                                std::span<const NamedBytes> corpus);

}  // namespace atp::conformance
