// SPDX-License-Identifier: Apache-2.0
// Programs as a user runs them: by a line of the shell.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace atp::test {

struct Outcome {
    int status = -1;     // -1: it did not exit by itself
    std::string output;  // standard output; with 2>&1 in the line, errors too
};

inline Outcome shell(const std::string& line) {
    Outcome outcome;
    std::FILE* const pipe = popen(line.c_str(), "r");
    if (pipe == nullptr) return outcome;
    std::array<char, 4096> piece{};
    while (const std::size_t size = std::fread(piece.data(), 1, piece.size(), pipe)) {
        outcome.output.append(piece.data(), size);
    }
    const int status = pclose(pipe);
    if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
    return outcome;
}

}  // namespace atp::test
