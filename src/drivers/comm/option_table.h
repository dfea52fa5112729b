// SPDX-License-Identifier: Apache-2.0
// The table of options: one row for each option of a communicator, and functions on the rows.
//
// tools/write_options reads the rows of option_table.cc. It writes the fields of `Options`, the struct of atp.h, the
// conversion between both, the Python class, and docs/reference/options.md. To add an option, add a row and run
// tools/write_options.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "comm/options.h"

namespace atp::comm {

enum class OptionType : std::uint8_t {
    text,
    list,     // of texts without commas
    cores,    // list of numbers
    count,    // whole number
    power,    // of two
    number,   // above 0
    rate,     // of a link
    flag,     // true or false
    scaling,  // a choice, as the next three types
    lane_type,
    server_place,
    seal,
    multicast,
    time,  // 0 or longer
    wait,  // above 0
    file,  // path; read only by the PyTorch backend
};

enum class OptionScope : std::uint8_t {
    agreed,  // equal on all ranks. If ranks differ, no job is formed, and the error shows both texts
    own,     // each rank has its own value
    key,     // part of the keys in the store: ranks with another value do not find each other
};

using OptionField =
    std::variant<std::monostate, std::string Options::*, std::vector<std::string> Options::*,
                 std::vector<unsigned> Options::*, std::uint32_t Options::*, double Options::*, bool Options::*,
                 tensor::Scaling Options::*, tensor::LaneType Options::*, ServerPlace Options::*, Seal Options::*,
                 control::Multicast Options::*, Duration Options::*>;

// An empty text means that the option does not have this property.
struct OptionRow {
    std::string_view name;
    OptionField field;  // of the same name; none: the option has no field
    OptionType type;
    OptionScope scope;
    std::string_view fallback;         // the default, as text
    std::string_view fallback_help{};  // describes a default that is empty or 0; empty: "none"
    std::uint32_t least = 0;           // bounds of a count or power; 0 is accepted too if it is the default
    std::uint32_t most = UINT32_MAX;
    std::string_view choices{};               // names separated by "|", in the order of the enumerators
    std::string_view accepted{};              // describes the values of a text, list, file or multicast
    std::string_view python{};                // name in atp.Options
    std::string_view python_fallback_help{};  // if the default in Python differs
    std::string_view environment{};           // variable of the PyTorch backend
    std::string_view flag{};                  // of `atp bench`; rows may share one
    std::string_view placeholder{};           // of the value in the help
    std::string_view c_field{};               // of struct atp_options
    std::string_view help;                    // docs/reference/options.md, comments and help; without the bounds
    std::string_view page{};                  // page that explains the option; becomes a link
    std::string_view python_help{};           // `help` in Python, if it differs
    std::string_view note{};                  // more that docs/reference/options.md says
};

[[nodiscard]] std::span<const OptionRow> option_table();
[[nodiscard]] const OptionRow* find_option(std::string_view name);  // nullptr: no row has the name

// "a whole number from 1 to 64". Completes the sentence "use ...".
[[nodiscard]] std::string accepted_values(const OptionRow& row);
// "1", "none", "as many as all paths carry".
[[nodiscard]] std::string default_text(const OptionRow& row);

// "channels: '65' is invalid; use a whole number from 1 to 64".
[[nodiscard]] std::string option_refusal(const OptionRow& row, std::string_view text);

// Sets an option from its text. The error names the option, the value and the accepted values.
[[nodiscard]] Result<void> set_option(Options& options, std::string_view name, std::string_view text);
// The value in the form that set_option() accepts.
[[nodiscard]] std::string option_text(const Options& options, const OptionRow& row);

// Describes the first value outside of its bounds, as set_option() does. Times are not checked.
[[nodiscard]] std::optional<std::string> option_problem(const Options& options);

// Every option that ranks must agree on, by name, so that an error can show the difference. Normative:
// docs/spec/formation.md#procedure.
[[nodiscard]] std::string agreed_text(const Options& options);

}  // namespace atp::comm
