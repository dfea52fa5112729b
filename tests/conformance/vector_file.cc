// SPDX-License-Identifier: Apache-2.0
#include "vector_file.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>

namespace atp::conformance {
namespace {

// "a gradient of no unit" -> "a-gradient-of-no-unit"
std::string to_file_name(std::string_view description) {
    std::string name;
    for (const char queued_message : description) {
        const bool plain = (queued_message >= 'a' && queued_message <= 'z') ||
                           (queued_message >= 'A' && queued_message <= 'Z') ||
                           (queued_message >= '0' && queued_message <= '9');
        if (plain) name += queued_message;
        if (queued_message == ' ') name += '-';
    }
    return name;
}

void write_corpus(const std::filesystem::path& folder, std::span<const NamedBytes> corpus) {
    std::filesystem::create_directories(folder);
    for (const NamedBytes& input : corpus) {
        std::ofstream file(folder / to_file_name(input.description), std::ios::binary);
        file.exceptions(std::ios::failbit | std::ios::badbit);
        for (const std::byte byte : input.bytes) file.put(static_cast<char>(byte));
    }
}

std::string contents_of(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace

SpeltBytes spell(std::span<const std::byte> bytes, std::size_t spell_out_up_to) {
    static constexpr std::array<char, 17> digits{"0123456789abcdef"};
    SpeltBytes spelt{.hex = {}, .bytes = bytes.size()};
    if (bytes.size() > spell_out_up_to) {
        while (spelt.bytes != 0 && bytes[spelt.bytes - 1] == std::byte{0}) --spelt.bytes;
    }
    for (const std::byte byte : bytes.first(spelt.bytes)) {
        spelt.hex += digits.at(std::to_integer<std::size_t>(byte >> 4));
        spelt.hex += digits.at(std::to_integer<std::size_t>(byte & std::byte{0x0F}));
    }
    spelt.zero_bytes_after_hex = bytes.size() - spelt.bytes;
    return spelt;
}

std::vector<std::byte> bytes_of(std::string_view hex, std::size_t zero_bytes_after_hex) {
    std::vector<std::byte> bytes;
    for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
        bytes.push_back(static_cast<std::byte>(std::stoul(std::string(hex.substr(at, 2)), nullptr, 16)));
    }
    bytes.resize(bytes.size() + zero_bytes_after_hex);
    return bytes;
}

std::string committed_text(std::string_view file) {
    return contents_of(std::filesystem::path(ATP_SOURCE_DIR "/tests/conformance") / file);
}

std::vector<std::string> outdated_inputs(std::string_view folder, std::span<const NamedBytes> corpus) {
    std::vector<std::string> names;
    for (const NamedBytes& input : corpus) {
        const std::string name = to_file_name(input.description);
        const auto path = std::filesystem::path(ATP_SOURCE_DIR "/tests/fuzz/corpus") / folder / name;
        const std::string text = contents_of(path);
        const auto found = std::as_bytes(std::span(text));
        if (!std::filesystem::exists(path) || !std::ranges::equal(found, input.bytes)) names.push_back(name);
    }
    return names;
}

int write_vectors(std::span<char* const> arguments, const std::string& json, std::span<const NamedBytes> corpus) {
    try {
        if (arguments.size() == 1) {
            std::fputs(json.c_str(), stdout);
            return 0;
        }
        if (arguments.size() == 3 && std::string_view(arguments[1]) == "--corpus" && !corpus.empty()) {
            write_corpus(arguments[2], corpus);
            return 0;
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    std::fprintf(stderr, "usage: %s > FILE.json\n", arguments[0]);
    if (!corpus.empty()) std::fprintf(stderr, "       %s --corpus FOLDER\n", arguments[0]);
    return 2;
}

}  // namespace atp::conformance
