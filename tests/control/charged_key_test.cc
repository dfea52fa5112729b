// SPDX-License-Identifier: Apache-2.0
#include "control/charged_key.h"

#include "codes_fixture.h"

namespace atp::control {
namespace {

std::uint32_t key_in(const Bytes& bytes, const std::string& file = "leaf") {
    const auto joined = wire::decode<wire::Joined>(bytes);
    return joined ? charged_key(*tenants_at(file), *joined, bytes) : 0;
}

TEST(ChargedKey, IsTheOneWithWhichTheMemberJoined) {
    const Joined session;
    EXPECT_EQ(key_in(session.answer), vision.id);
    EXPECT_EQ(key_in(session.answer, "spine"), 0U) << "the file of another switch";
    EXPECT_EQ(charged_key({}, *wire::decode<wire::Joined>(session.answer), session.answer), 0U);
    EXPECT_EQ(key_in(testing::encoded(joined_message())), 0U) << "no code";
}

TEST(ChargedKey, H103_IsProvenByEachByte) {
    const Joined session;
    for (std::size_t at = 0; at < session.answer.size(); ++at) {
        Bytes changed = session.answer;
        changed[at] ^= std::byte{1};
        EXPECT_EQ(key_in(changed), 0U) << at;
    }
}

}  // namespace
}  // namespace atp::control
