// SPDX-License-Identifier: Apache-2.0
// Checks wire/control.h against the committed control.json, which the test reads like an implementation in another
// language.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "control_vectors.h"
#include "json_fields.h"
#include "vector_file.h"

namespace atp::conformance {
namespace {

using nlohmann::json;

json committed() { return json::parse(committed_text("control.json")); }

TEST(ControlVectors, EveryVectorDecodesToItsFields) {
    for (const json& vector : committed()) {
        SCOPED_TRACE(vector.at("description").get<std::string>());
        const auto fields = control_fields(bytes_of(vector));
        ASSERT_EQ(fields.has_value(), vector.at("accepted").get<bool>());
        if (fields) {
            EXPECT_EQ(json::parse(*fields), vector.at("fields"));
        }
    }
}

TEST(ControlVectors, EveryMessageTypeIsAcceptedAndTwentyFiveVectorsAreRefused) {
    std::set<std::string> accepted;
    std::size_t refused = 0;
    for (const json& vector : committed()) {
        if (vector.at("accepted").get<bool>()) {
            accepted.insert(vector.at("fields").at("type").get<std::string>());
        } else {
            ++refused;
        }
    }
    EXPECT_EQ(accepted.size(), 16U);
    EXPECT_GE(refused, 25U);
}

TEST(ControlVectors, FileMatchesTheOutputOfItsWriter) {
    EXPECT_EQ(text_of(control_vectors()), committed_text("control.json"))
        << "the format has changed: if this is intended, run write_control_vectors > tests/conformance/control.json";
}

// `write_control_vectors --corpus tests/fuzz/corpus/control` writes the inputs.
TEST(ControlVectors, EveryVectorIsAnInputOfTheFuzzer) {
    EXPECT_THAT(outdated_inputs("control", corpus_of(control_vectors())), testing::IsEmpty());
}

}  // namespace
}  // namespace atp::conformance
