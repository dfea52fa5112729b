// SPDX-License-Identifier: Apache-2.0
// Holds wire/control.h to the committed control.json, read the way an implementation in another language would read it.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "control_vectors.h"

namespace atp::conformance {
namespace {

using nlohmann::json;
using Bytes = std::vector<std::byte>;

std::string committed_text() {
    std::ifstream file(ATP_SOURCE_DIR "/tests/conformance/control.json");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

json committed() { return json::parse(committed_text()); }

Bytes bytes_of(const json& vector) {
    const auto hex = vector.at("hex").get<std::string>();
    Bytes bytes;
    for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
        bytes.push_back(static_cast<std::byte>(std::stoul(hex.substr(at, 2), nullptr, 16)));
    }
    bytes.resize(bytes.size() + vector.at("zero_bytes_after_hex").get<std::size_t>());
    return bytes;
}

TEST(ControlVectors, AreReadAsTheFileSays) {
    for (const json& vector : committed()) {
        SCOPED_TRACE(vector.at("description").get<std::string>());
        const auto fields = control_fields(bytes_of(vector));
        ASSERT_EQ(fields.has_value(), vector.at("accepted").get<bool>());
        if (fields) {
            EXPECT_EQ(json::parse(*fields), vector.at("fields"));
        }
    }
}

TEST(ControlVectors, EveryTypeIsThereAcceptedAndRefused) {
    std::set<std::string> accepted;
    std::size_t refused = 0;
    for (const json& vector : committed()) {
        if (vector.at("accepted").get<bool>()) {
            accepted.insert(vector.at("fields").at("type").get<std::string>());
        } else {
            ++refused;
        }
    }
    EXPECT_EQ(accepted.size(), 8U);
    EXPECT_GE(refused, 25U);
}

TEST(ControlVectors, FileIsWhatTheProgramWrites) {
    EXPECT_EQ(control_vectors_to_json(control_vectors()), committed_text())
        << "the format has changed: if that was meant, write_control_vectors > tests/conformance/control.json";
}

}  // namespace
}  // namespace atp::conformance
