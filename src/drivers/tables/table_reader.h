// SPDX-License-Identifier: Apache-2.0
// Reads the tables of a TOML file, key by key.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace atp::tables {

// The tables [[kind]] of a document.
struct Tables {
    toml::table document;
    std::string kind;

    [[nodiscard]] const toml::array& all() const { return *document.get_as<toml::array>(kind); }
};

// `name`: of the document, in the error.
[[nodiscard]] tl::expected<toml::table, std::string> parse_document(std::string_view text, std::string_view name);

// Of a document that has one such table at least, and no other key. `name`: of the document, in the error.
[[nodiscard]] tl::expected<Tables, std::string> parse_tables(std::string_view text, std::string_view name,
                                                             std::string_view kind);

// Collects the first error of a TOML table, with its line.
//
// Ownership: borrows the table.
// Calling order: read every key; the caller supplies defaults of missing keys. Then problem(), which describes the
//   first wrong key, or else a key that was never read.
class TableReader {
  public:
    // `place`: file and table, the prefix of every error.
    TableReader(const toml::table& table, std::string place) : table_(table), place_(std::move(place)) {}

    [[nodiscard]] bool has(std::string_view key) const { return table_.contains(key); }
    [[nodiscard]] std::optional<std::string> text(std::string_view key, std::string_view accepted);
    [[nodiscard]] bool flag(std::string_view key, bool missing);
    [[nodiscard]] std::optional<std::uint64_t> number(std::string_view key, std::uint64_t least, std::uint64_t most);
    [[nodiscard]] const toml::table* table(std::string_view key, std::string_view accepted);
    void list(std::string_view key, std::string_view accepted);  // checked only, the contents are ignored
    // Of a list that is not empty, or of one text. Empty: the key is missing, or refused.
    [[nodiscard]] std::vector<std::string> texts(std::string_view key, std::string_view accepted);
    [[nodiscard]] std::vector<std::uint64_t> numbers(std::string_view key, std::uint64_t least, std::uint64_t most);

    // A value as one types it after a flag: digits, true, a text, or such values with commas between them. nullopt: the
    // key is missing, or refused.
    [[nodiscard]] std::optional<std::string> words(std::string_view key);
    // Of a key that is there.
    [[nodiscard]] std::uint32_t line_of(std::string_view key) const { return table_.get(key)->source().begin.line; }

    // Parses a text with `parse`. An integer is parsed as its digits.
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

    // Reports a wrong value. `accepted` describes valid values.
    void refuse(std::string_view key, std::string_view accepted);
    void require(std::string_view key, std::string_view accepted);
    void complain(std::string_view words);  // reports an error of the whole table
    void complain_of(std::string_view key, std::string_view words);
    [[nodiscard]] std::optional<std::string> problem();

  private:
    [[nodiscard]] const toml::node* find(std::string_view key);
    void complain_at(const toml::node& node, std::string_view words);
    [[nodiscard]] static std::optional<std::string> digits_or_text(const toml::node& node);

    const toml::table& table_;
    std::string place_;
    std::set<std::string, std::less<>> read_;
    std::optional<std::string> problem_;
};

}  // namespace atp::tables
