// SPDX-License-Identifier: Apache-2.0
// Writes control.json to stdout, or its messages as files for the fuzzer: the two committed forms of the vectors. The
// format changes when a person runs this and commits what it wrote, and not otherwise.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <string_view>

#include "control_vectors.h"

namespace {

using atp::conformance::control_vectors;
using atp::conformance::ControlVector;

// "a join of token 0" -> "a-join-of-token-0"
std::string to_file_name(std::string_view description) {
    std::string name;
    for (const char letter : description) {
        const bool plain =
            (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
        if (plain) name += letter;
        if (letter == ' ') name += '-';
    }
    return name;
}

void write_corpus(const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    for (const ControlVector& vector : control_vectors()) {
        std::ofstream file(folder / to_file_name(vector.description), std::ios::binary);
        file.exceptions(std::ios::failbit | std::ios::badbit);
        for (const std::byte byte : vector.bytes) file.put(static_cast<char>(byte));
    }
}

}  // namespace

int main(int argument_count, char** arguments) {
    try {
        if (argument_count == 1) {
            std::fputs(atp::conformance::control_vectors_to_json(control_vectors()).c_str(), stdout);
            return 0;
        }
        if (argument_count == 3 && std::string_view(arguments[1]) == "--corpus") {
            write_corpus(arguments[2]);
            return 0;
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    std::fprintf(stderr, "usage: %s > tests/conformance/control.json\n       %s --corpus tests/fuzz/corpus/control\n",
                 arguments[0], arguments[0]);
    return 2;
}
