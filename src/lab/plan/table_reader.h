// SPDX-License-Identifier: Apache-2.0
// Reads one table of a TOML file, key by key.
#pragma once

#include <toml++/toml.h>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace atp::plan {

// Calling order: read keys, with what holds where they are missing; then problem(), which is the first wrong one, or a
// key that nobody read. Borrows the table.
class TableReader {
  public:
    // `place`: the file and the table, in front of every complaint.
    TableReader(const toml::table& table, std::string place) : table_(table), place_(std::move(place)) {}

    [[nodiscard]] bool has(std::string_view key) const { return table_.contains(key); }
    [[nodiscard]] std::optional<std::string> text(std::string_view key, std::string_view accepted);
    [[nodiscard]] bool flag(std::string_view key, bool missing);
    [[nodiscard]] std::optional<std::uint64_t> number(std::string_view key, std::uint64_t least, std::uint64_t most);
    [[nodiscard]] const toml::table* table(std::string_view key, std::string_view accepted);
    void list(std::string_view key, std::string_view accepted);  // of which nothing is needed

    // A text that `parse` makes a value of; a whole number is taken for its digits.
    template <class Parse>
    [[nodiscard]] auto quantity(std::string_view key, Parse parse, std::string_view accepted)
        -> decltype(parse(std::string_view())) {
        const toml::node* node = find(key);
        if (node == nullptr) return std::nullopt;
        const std::optional<std::string> text = digits_or_text(*node);
        auto value = text ? parse(std::string_view(*text)) : std::nullopt;
        if (!value) refuse(key, accepted);
        return value;
    }

    // The value of that key is wrong; `accepted` says what would be right.
    void refuse(std::string_view key, std::string_view accepted);
    void require(std::string_view key, std::string_view accepted);
    void complain(std::string_view words);  // of the table as a whole
    [[nodiscard]] std::optional<std::string> problem();

  private:
    [[nodiscard]] const toml::node* find(std::string_view key);
    [[nodiscard]] static std::optional<std::string> digits_or_text(const toml::node& node);

    const toml::table& table_;
    std::string place_;
    std::set<std::string, std::less<>> read_;
    std::optional<std::string> problem_;
};

}  // namespace atp::plan
