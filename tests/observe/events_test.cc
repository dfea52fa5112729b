// SPDX-License-Identifier: Apache-2.0
#include "observe/events.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace atp::observe {
namespace {

// Rows of the page: | `words` | severity | ...
std::vector<std::pair<std::string, std::string>> rows_of_page() {
    std::ifstream page(ATP_SOURCE_DIR "/docs/reference/events.md");
    std::vector<std::pair<std::string, std::string>> rows;
    bool in_events = false;
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("## ")) in_events = line == "## Events";
        if (!in_events || !line.starts_with("| `")) continue;
        const std::size_t words_end = line.find('`', 3);
        const std::size_t severity = line.find("| ", words_end) + 2;
        rows.emplace_back(line.substr(3, words_end - 3), line.substr(severity, line.find(' ', severity) - severity));
    }
    return rows;
}

TEST(Events, PageListsEachEventWithItsSeverity) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const EventRow& row : event_table()) rows.emplace_back(row.words, to_string(row.severity));
    EXPECT_EQ(rows_of_page(), rows);
}

TEST(Events, NamesOfSeveritiesReadAsThemselves) {
    for (const Severity severity :
         {Severity::trace, Severity::debug, Severity::info, Severity::warn, Severity::error, Severity::off}) {
        EXPECT_EQ(severity_of(to_string(severity)), severity);
    }
    EXPECT_FALSE(severity_of("verbose"));
    EXPECT_FALSE(severity_of(""));
}

}  // namespace
}  // namespace atp::observe
