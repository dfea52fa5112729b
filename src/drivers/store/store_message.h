// SPDX-License-Identifier: Apache-2.0
// What a store's client and server say to each other over a stream of bytes. No sockets here: bytes in, bytes out.
//
// Every message is its length and as many bytes; numbers are big-endian.
//   request: u32 length | u8 version | u8 kind   | i64 number | u16 keys | (u16 bytes, key) ... | u32 bytes, value
//   reply:   u32 length | u8 version | u8 status | i64 number | u16 fields | (u32 bytes, field) ...
// A client begins with `hello` and asks one thing at a time: each request but `cancel` has one reply, and the next one
// follows it. `cancel` ends a `get` or `wait` that is not answered yet, with Status::cancelled; where the answer has
// crossed it, it means nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"
#include "store/store_refusal.h"

namespace atp::store {

inline constexpr std::uint8_t store_version = 1;
inline constexpr std::size_t max_keys_per_request = 128;
inline constexpr std::size_t length_bytes = 4;
// What may follow the length: the longest value with its key, with room to spare; as well 128 of the longest keys.
inline constexpr std::size_t max_message_bytes = max_value_bytes + 1024;
static_assert(max_message_bytes > max_keys_per_request * (max_key_bytes + 4) + 64);
static_assert(max_message_bytes > max_value_bytes + max_key_bytes + 64);

enum class Kind : std::uint8_t {
    hello = 1,  // the number is hello_number: a stranger's bytes are hardly that
    set,        // one key, a value
    add,        // one key, the number; the sum comes back as a number
    get,        // keys; their values come back once all are there: as many of the first as fit, at least one
    wait,       // keys
    missing,    // keys; those that are missing come back
    remove,     // one key, the prefix; how many there were comes back as a number
    cancel,
};

inline constexpr std::int64_t hello_number = 0x4154'5020'5354'4F52;  // "ATP STOR"

struct Request {
    Kind kind = Kind::hello;
    std::int64_t number = 0;
    std::vector<std::string> keys;
    std::string value;

    [[nodiscard]] bool operator==(const Request&) const = default;
};

struct Reply {
    Status status = Status::done;
    std::int64_t number = 0;
    std::vector<std::string> fields;  // of a refusal: one, its text

    [[nodiscard]] bool operator==(const Reply&) const = default;
};

[[nodiscard]] std::string_view to_string(Kind kind);

// With their lengths. What is encoded must be within the bounds: the client checks, and the server makes no other.
[[nodiscard]] std::string encode(const Request& request);
[[nodiscard]] std::string encode(const Reply& reply);
// How many bytes a field adds to a reply, and a reply without fields has behind its length.
inline constexpr std::size_t field_overhead_bytes = 4;
inline constexpr std::size_t bare_reply_bytes = 12;

// Of messages without their lengths. What they accept is whole: every field is within its bounds and has what its kind
// wants, and encoding it gives the same bytes again.
[[nodiscard]] Outcome<Request> decode_request(std::string_view message);
[[nodiscard]] Outcome<Reply> decode_reply(std::string_view message);

// Cuts a stream into messages. It keeps what is not taken yet, which is less than a message if next() is called until
// it yields nothing.
class MessageReader {
  public:
    void append(std::string_view bytes);
    // Without its length, good until the next append(). nullopt: the rest is yet to come. A refusal: no message begins
    // here, and nothing that follows can be trusted.
    [[nodiscard]] Outcome<std::optional<std::string_view>> next();
    // Some of a message has come and not all of it.
    [[nodiscard]] bool halfway() const { return at_ < bytes_.size(); }

  private:
    std::string bytes_;
    std::size_t at_ = 0;
};

}  // namespace atp::store
