// SPDX-License-Identifier: Apache-2.0
// Checks dynamic scaling of this implementation against the committed scale.json. scale_page_test.py computes the
// file's scales, lanes and sums from the rules of docs/spec/numbers.md.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "scale_vectors.h"
#include "vector_file.h"

namespace atp::conformance {
namespace {

TEST(ScaleVectors, DescriptionsAreUnique) {
    std::set<std::string> seen;
    for (const auto& row : nlohmann::json::parse(committed_text("scale.json"))) {
        EXPECT_TRUE(seen.insert(row.at("description").get<std::string>()).second) << row.at("description");
    }
    EXPECT_FALSE(seen.empty());
}

TEST(ScaleVectors, FileMatchesTheOutputOfItsWriter) {
    EXPECT_TRUE(committed_text("scale.json") == text_of(scale_vectors()))
        << "scaling has changed: if this is intended, run write_scale_vectors > tests/conformance/scale.json";
}

}  // namespace
}  // namespace atp::conformance
