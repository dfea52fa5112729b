// SPDX-License-Identifier: Apache-2.0
#include "numeric/element_type.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace atp::numeric {
namespace {

TEST(ElementType, NumberOfEachTypeEqualsItsNumberInTheProtocol) {
    EXPECT_EQ(static_cast<int>(ElementType::float32), 0);
    EXPECT_EQ(static_cast<int>(ElementType::float64), 1);
    EXPECT_EQ(static_cast<int>(ElementType::float16), 2);
    EXPECT_EQ(static_cast<int>(ElementType::bfloat16), 3);
    EXPECT_EQ(static_cast<int>(ElementType::int32), 4);
    EXPECT_EQ(static_cast<int>(ElementType::int64), 5);
}

TEST(ElementType, NameIsParsedToTheSameType) {
    std::set<std::string_view> names;
    for (const ElementType type : element_types) {
        EXPECT_EQ(parse_element_type(to_string(type)), type) << to_string(type);
        names.insert(to_string(type));
    }
    EXPECT_EQ(names.size(), element_types.size()) << "two types have one name";
    EXPECT_EQ(parse_element_type("float8"), std::nullopt);
    EXPECT_EQ(parse_element_type(""), std::nullopt);
}

TEST(ElementType, SizeInBitsIsTheNumberInTheName) {
    for (const ElementType type : element_types) {
        const std::string name(to_string(type));
        EXPECT_EQ(bytes_of(type) * 8, std::stoul(name.substr(name.find_first_of("0123456789")))) << name;
        EXPECT_EQ(is_integer(type), name.starts_with("int")) << name;
    }
}

}  // namespace
}  // namespace atp::numeric
