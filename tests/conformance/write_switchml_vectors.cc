// SPDX-License-Identifier: Apache-2.0
// Writes switchml.json to stdout, or its packets as files for the fuzzer: the two committed forms of the vectors. The
// format changes when a person runs this and commits what it wrote, and not otherwise.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <string_view>

#include "switchml_vectors.h"

namespace {

using atp::conformance::switchml_vectors;
using atp::conformance::SwitchMlVector;

// "every flag" -> "every-flag"
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
    for (const SwitchMlVector& vector : switchml_vectors()) {
        std::ofstream file(folder / to_file_name(vector.description), std::ios::binary);
        file.exceptions(std::ios::failbit | std::ios::badbit);
        for (const std::byte byte : vector.bytes) file.put(static_cast<char>(byte));
    }
}

}  // namespace

int main(int argument_count, char** arguments) {
    try {
        if (argument_count == 1) {
            std::fputs(atp::conformance::switchml_vectors_to_json(switchml_vectors()).c_str(), stdout);
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
    std::fprintf(stderr, "usage: %s > tests/conformance/switchml.json\n       %s --corpus tests/fuzz/corpus/switchml\n",
                 arguments[0], arguments[0]);
    return 2;
}
