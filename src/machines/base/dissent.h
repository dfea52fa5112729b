// SPDX-License-Identifier: Apache-2.0
// Which rank differs from the others, when a value must be equal on all ranks. control/fact_round.cc compares options
// and world sizes with it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace atp {

struct Dissent {
    std::uint32_t rank = 0;  // the lowest rank whose value differs from that of most ranks
    std::string own;         // its value
    std::string others;      // the value of most ranks; of equally many, that of the lowest rank
};

// `values`: by rank. nullopt: all are equal, or there are none.
[[nodiscard]] std::optional<Dissent> dissent_of(std::span<const std::string> values);

// The words of `text` that `other` does not have, in their order, with blanks between them.
[[nodiscard]] std::string words_only_in(std::string_view text, std::string_view other);

}  // namespace atp
