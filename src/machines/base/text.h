// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace atp {

// Lists names: "3", "3 and 5", "3, 5 and 7". Of more than eight names it lists the first eight: "0, 1, 2, 3, 4, 5, 6,
// 7 and 12 more". Without names it returns "nothing".
[[nodiscard]] std::string list_some(std::span<const std::string> names);

// "1 worker", "2 workers".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view noun);

// `text` with a `?` in place of each byte of a control character (C0, C1, DEL, and some that are not seen or reorder
// a line), and of each byte that is no UTF-8. So no text of another host can start a line of a log or control a
// terminal, and it never gets longer.
[[nodiscard]] std::string printable(std::string_view text);

// What of a printable text fits this many columns of a terminal, from its beginning.
[[nodiscard]] std::string_view first_columns(std::string_view text, std::size_t columns);

}  // namespace atp
