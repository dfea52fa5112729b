// SPDX-License-Identifier: Apache-2.0
#include "control/session_code.h"

#include <gtest/gtest.h>

#include "control/codes_fixture.h"

namespace atp::control {
namespace {

TEST(SessionCode, H100_ByteThatChangesAnywhereInAMessageBreaksItsCode) {
    Joined pair;
    const Bytes join = pair.member.join();
    const Bytes leave = pair.member.leave();
    const std::size_t join_end = wire::code_of<wire::JoinCode>(join)->covered.size() + sizeof(wire::MessageCode);
    for (std::size_t at = 0; at < join_end; ++at) {
        if (at == wire::int32_path_at) continue;
        Bytes changed = join;
        changed[at] ^= std::byte{1};
        EXPECT_FALSE(pair.node.check_join(changed).believed) << "byte " << at;
    }
    for (std::size_t at = 0; at < leave.size(); ++at) {
        Bytes changed = leave;
        changed[at] ^= std::byte{1};
        EXPECT_FALSE(pair.node.check_leave(changed)) << "byte " << at;
    }
    for (const Bytes& message : {pair.node.encoded(joined_message()), pair.node.encoded(refused_message())}) {
        EXPECT_EQ(pair.member.hear(message), Belief::believed);
        for (std::size_t at = 0; at < message.size(); ++at) {
            Bytes changed = message;
            changed[at] ^= std::byte{1};
            EXPECT_NE(pair.member.hear(changed), Belief::believed) << "byte " << at;
        }
    }
    EXPECT_TRUE(pair.node.check_join(join).believed);
}

// Padding is not covered: otherwise each forged JOIN would cost a code of as many bytes as its sender likes.
TEST(SessionCode, PaddingAndTheFlagOfASwitchInThePathMayChange) {
    Joined pair;
    Bytes join = pair.member.join();
    join.resize(1400, std::byte{1});
    join[wire::int32_path_at] = std::byte{1};
    const auto decoded = wire::decode<wire::Join>(join);
    ASSERT_TRUE(decoded);
    EXPECT_TRUE(decoded->int32_path) << "this byte is the flag";
    EXPECT_TRUE(pair.node.check_join(join).believed);
}

TEST(SessionCode, H100_MessageThatIsSentBackIsNotBelieved) {
    Joined pair;
    const Bytes refused = pair.node.encoded(refused_message());
    Bytes as_leave = refused;
    as_leave[1] = static_cast<std::byte>(wire::ControlType::leave);
    EXPECT_FALSE(pair.node.check_leave(as_leave));
    const SessionCode code(crypto::derive(vision.key, crypto::for_join, "leaf"), nonce, 5, key_of(a_join));
    Bytes message(256);
    const std::size_t size = wire::encode(refused_message(), message);
    message.resize(code.append(wire::PlainCode{}, Direction::up, message, size));
    const auto coded = wire::code_of<wire::PlainCode>(message);
    ASSERT_TRUE(coded);
    EXPECT_TRUE(code.fits(*coded, Direction::up));
    EXPECT_FALSE(code.fits(*coded, Direction::down));
}

}  // namespace
}  // namespace atp::control
