// SPDX-License-Identifier: Apache-2.0
#include "store/store_message.h"

#include <gtest/gtest.h>

namespace atp::store {
namespace {

std::string body(const std::string& message) { return message.substr(length_bytes); }

StoreStatus refusal_of(const std::string& message) {
    const auto decoded = decode_request(message);
    return decoded ? StoreStatus::done : decoded.error().status;
}

TEST(StoreMessage, BytesMatchTheFormat) {
    const StoreRequest request{.kind = Kind::set, .number = 0, .keys = {"key"}, .value = "ab"};
    const std::string expected(
        "\0\0\0\x15"        // length
        "\x01\x02"          // version, set
        "\0\0\0\0\0\0\0\0"  // number
        "\0\x01\0\x03key"   // keys
        "\0\0\0\x02"        // value
        "ab",
        4 + 2 + 8 + 7 + 4 + 2);
    // The length counts the bytes after it.
    std::string sealed = expected;
    sealed[3] = static_cast<char>(expected.size() - length_bytes);
    EXPECT_EQ(encode(request), sealed);
    const Reply reply{.status = StoreStatus::done, .number = -2, .fields = {"f"}};
    EXPECT_EQ(encode(reply), std::string("\0\0\0\x11\x01\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFE\0\x01\0\0\0\x01"
                                         "f",
                                         21));
}

TEST(StoreMessage, EveryKindDecodesToItsFields) {
    const std::vector<StoreRequest> requests{
        {.kind = Kind::hello, .number = hello_number, .keys = {}, .value = {}},
        {.kind = Kind::set, .number = 0, .keys = {std::string(max_key_bytes, 'k')}, .value = std::string(65536, 'v')},
        {.kind = Kind::add, .number = INT64_MIN, .keys = {"counter"}, .value = {}},
        {.kind = Kind::get, .number = 0, .keys = {"a", "b"}, .value = {}},
        {.kind = Kind::wait,
         .number = 0,
         .keys = std::vector<std::string>(max_keys_per_request, std::string(max_key_bytes, 'k')),
         .value = {}},
        {.kind = Kind::missing, .number = 0, .keys = {"c"}, .value = {}},
        {.kind = Kind::remove, .number = 0, .keys = {"prefix/"}, .value = {}},
        {.kind = Kind::cancel, .number = 0, .keys = {}, .value = {}},
    };
    for (const StoreRequest& request : requests) {
        const auto decoded = decode_request(body(encode(request)));
        ASSERT_TRUE(decoded) << to_string(request.kind) << ": " << decoded.error().text;
        EXPECT_TRUE(*decoded == request) << to_string(request.kind);
    }
    const Reply reply{.status = StoreStatus::cancelled, .number = -1, .fields = {"", "b"}};
    EXPECT_TRUE(decode_reply(body(encode(reply))) == reply);
}

TEST(StoreMessage, EveryTruncationIsRefused) {
    const std::string whole =
        body(encode(StoreRequest{.kind = Kind::set, .number = 0, .keys = {"key"}, .value = "value"}));
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_EQ(refusal_of(whole.substr(0, size)), StoreStatus::malformed) << size << " bytes";
    }
    EXPECT_EQ(refusal_of(whole + "x"), StoreStatus::malformed);
    const std::string reply = body(encode(Reply{.status = StoreStatus::done, .number = 0, .fields = {"a", "b"}}));
    for (std::size_t size = 0; size < reply.size(); ++size) {
        EXPECT_FALSE(decode_reply(reply.substr(0, size))) << size << " bytes";
    }
    EXPECT_FALSE(decode_reply(reply + "x"));
}

TEST(StoreMessage, OtherVersionIsRefusedAsSuch) {
    std::string message =
        body(encode(StoreRequest{.kind = Kind::hello, .number = hello_number, .keys = {}, .value = {}}));
    message[0] = 2;
    EXPECT_EQ(refusal_of(message), StoreStatus::version_mismatch);
    EXPECT_EQ(refusal_of(message.substr(0, 1)), StoreStatus::version_mismatch);
    const auto reply = decode_reply("\x07");
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().status, StoreStatus::version_mismatch);
    EXPECT_EQ(reply.error().text,
              "this host speaks version 1 of the store protocol, the peer version 7: run the same version of atp on "
              "all ranks");
}

TEST(StoreMessage, FieldsThatAKindLacksAreRefused) {
    const std::vector<StoreRequest> wrong{
        {.kind = Kind::hello, .number = 1, .keys = {}, .value = {}},
        {.kind = Kind::hello, .number = hello_number, .keys = {"key"}, .value = {}},
        {.kind = Kind::set, .number = 0, .keys = {}, .value = "value"},
        {.kind = Kind::set, .number = 0, .keys = {"a", "b"}, .value = "value"},
        {.kind = Kind::set, .number = 5, .keys = {"a"}, .value = "value"},
        {.kind = Kind::add, .number = 1, .keys = {"a"}, .value = "value"},
        {.kind = Kind::get, .number = 0, .keys = {}, .value = {}},
        {.kind = Kind::get, .number = 0, .keys = {""}, .value = {}},
        {.kind = Kind::cancel, .number = 0, .keys = {"a"}, .value = {}},
        {.kind = static_cast<Kind>(0), .number = 0, .keys = {}, .value = {}},
        {.kind = static_cast<Kind>(9), .number = 0, .keys = {}, .value = {}},
    };
    for (const StoreRequest& request : wrong) EXPECT_EQ(refusal_of(body(encode(request))), StoreStatus::malformed);
    EXPECT_FALSE(decode_reply(body(encode(Reply{.status = static_cast<StoreStatus>(0), .number = 0, .fields = {}}))));
    EXPECT_FALSE(decode_reply(body(encode(Reply{.status = static_cast<StoreStatus>(8), .number = 0, .fields = {}}))));
}

TEST(StoreMessage, FieldsBeyondTheirBoundsAreRefused) {
    const std::string long_key(max_key_bytes + 1, 'k');
    const std::string long_value(max_value_bytes + 1, 'v');
    const std::vector<std::string> many_keys(max_keys_per_request + 1, "k");
    const std::vector<StoreRequest> wrong{
        {.kind = Kind::get, .number = 0, .keys = {long_key}, .value = {}},
        {.kind = Kind::set, .number = 0, .keys = {"key"}, .value = long_value},
        {.kind = Kind::wait, .number = 0, .keys = many_keys, .value = {}},
    };
    for (const StoreRequest& request : wrong) EXPECT_EQ(refusal_of(body(encode(request))), StoreStatus::too_large);
}

TEST(MessageReader, StreamInPiecesOfAnySizeGivesItsMessages) {
    const std::string first = encode(Reply{.status = StoreStatus::done, .number = 1, .fields = {"one"}});
    const std::string second = encode(Reply{.status = StoreStatus::done, .number = 2, .fields = {}});
    const std::string stream = first + second + first;
    for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
        MessageReader reader;
        std::vector<std::string> messages;
        for (std::size_t at = 0; at < stream.size(); at += piece) {
            reader.append(std::string_view(stream).substr(at, piece));
            for (auto next = reader.next(); next && next->has_value(); next = reader.next()) {
                messages.emplace_back(**next);
            }
        }
        EXPECT_EQ(messages, (std::vector{body(first), body(second), body(first)})) << "in pieces of " << piece;
        EXPECT_FALSE(reader.halfway());
    }
}

TEST(MessageReader, PartOfAMessageIsPending) {
    MessageReader reader;
    EXPECT_FALSE(reader.halfway());
    reader.append(std::string_view("\0\0", 2));
    EXPECT_TRUE(reader.next());
    EXPECT_TRUE(reader.halfway());
}

TEST(MessageReader, TooLongMessageIsRefusedByItsLength) {
    MessageReader web;
    web.append("GET / HTTP/1.1\r\n");
    const auto message = web.next();
    ASSERT_FALSE(message);
    EXPECT_EQ(message.error().status, StoreStatus::too_large);
}

}  // namespace
}  // namespace atp::store
