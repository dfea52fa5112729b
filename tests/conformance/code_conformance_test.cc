// SPDX-License-Identifier: Apache-2.0
// Checks the codes of messages against the committed code.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "code_vectors.h"
#include "vector_file.h"

namespace atp::conformance {
namespace {

using nlohmann::json;

TEST(CodeVectors, CodesOfTheFileAreRightWhereItSaysSo) {
    for (const json& row : json::parse(committed_text("code.json"))) {
        SCOPED_TRACE(row.at("description"));
        const auto direction = row.at("direction") == "up" ? control::Direction::up : control::Direction::down;
        EXPECT_EQ(has_right_code(bytes_of(row.at("hex").get<std::string>(), 0), row.at("name").get<std::string>(),
                                 row.at("boot").get<std::uint64_t>(), direction),
                  row.at("right").get<bool>());
    }
}

TEST(CodeVectors, FileMatchesTheOutputOfItsWriter) {
    EXPECT_EQ(text_of(code_vectors()), committed_text("code.json"))
        << "codes have changed: if this is intended, run write_code_vectors > tests/conformance/code.json";
}

// `write_code_vectors --corpus tests/fuzz/corpus/control` writes the inputs.
TEST(CodeVectors, EveryVectorIsAnInputOfTheFuzzer) {
    EXPECT_THAT(outdated_inputs("control", corpus_of(code_vectors())), testing::IsEmpty());
}

}  // namespace
}  // namespace atp::conformance
