// SPDX-License-Identifier: Apache-2.0
// Compares a piece of work with the roofline of this host; both are measured in the same run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace atp::bench {

enum class BarOn : std::uint8_t { value, share };

struct Bar {
    BarOn on = BarOn::share;
    double least = 0.0;  // 0: no bar
};

// A measurement of two sides: the work and the roofline. A pass is the smallest amount of work that is repeated. Both
// sides process the same number of units in a pass.
struct Subject {
    std::string name;
    std::string unit;  // of value and limit
    double units_per_pass = 0.0;
    Bar bar;
    std::function<void()> prepare = [] {};  // called before every pass of the work, not timed
    std::function<void()> pass;             // the work
    std::function<void()> limit_pass;       // the roofline
    // Called after an untimed pass of the work: checks the result of this pass by plain arithmetic.
    std::function<bool()> verify;
};

struct Effort {
    int rounds = 1;              // of each side, in turns; figures are medians over the rounds
    double round_seconds = 0.0;  // a round has as many passes as fit into this time, at least one
};

struct Figure {
    std::string name;
    double value = 0.0;
    std::string unit;
    double limit = 0.0;
    double share = 0.0;
    Bar bar;
    bool verified = false;

    [[nodiscard]] bool bar_met() const { return (bar.on == BarOn::share ? share : value) >= bar.least; }
};

// Runs the two sides in turns, so that other load on the host affects both equally.
Figure measure(const Subject& subject, const Effort& effort);

// Calls the C library's memcpy. A compiler that knows the size may inline slower code for large copies, which would
// lower the roofline.
void copy_bytes(void* to, const void* from, std::size_t bytes);

// FNV-1a over 8-byte words.
std::uint64_t hash_bytes(const void* bytes, std::size_t size);

}  // namespace atp::bench
