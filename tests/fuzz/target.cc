// SPDX-License-Identifier: Apache-2.0
// The entry of every fuzz target. libFuzzer defines its name and signature.
#include <cstddef>
#include <cstdint>

#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    atp::fuzz::Input input(data, size);
    atp::fuzz::run(input);
    return 0;
}
