// SPDX-License-Identifier: Apache-2.0
// The messages between a store's client and server, over a stream of bytes. This file uses no sockets.
//
// Every message is a length and that many bytes; numbers are big-endian.
//   request: u32 length | u8 version | u8 kind   | i64 number | u16 keys | (u16 bytes, key) ... | u32 bytes, value
//   reply:   u32 length | u8 version | u8 status | i64 number | u16 fields | (u32 bytes, field) ...
// A client begins with `hello`. Each request except `cancel` has one reply, and the client sends its next request after
// that reply. `cancel` ends a `get` or `wait` without a reply, with StoreStatus::cancelled. If the reply was sent
// already, `cancel` has no effect.
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
// Limit of the bytes after the length: room for the longest value with its key, and for 128 of the longest keys.
inline constexpr std::size_t max_message_bytes = max_value_bytes + 1024;
static_assert(max_message_bytes > max_keys_per_request * (max_key_bytes + 4) + 64);
static_assert(max_message_bytes > max_value_bytes + max_key_bytes + 64);

enum class Kind : std::uint8_t {
    hello = 1,  // number: hello_number, which another protocol is unlikely to send
    set,        // one key, a value
    add,        // one key, the number to add. Reply: the sum as number
    get,        // keys. Reply when all are set: values of the first keys, as many as fit, at least one
    wait,       // keys. Reply when all are set
    missing,    // keys. Reply: the keys that are not set
    remove,     // one key, the prefix. Reply: the count of removed keys as number
    cancel,     // nothing; see above
};

inline constexpr std::int64_t hello_number = 0x4154'5020'5354'4F52;  // "ATP STOR"

struct StoreRequest {
    Kind kind = Kind::hello;
    std::int64_t number = 0;
    std::vector<std::string> keys;
    std::string value;

    [[nodiscard]] bool operator==(const StoreRequest&) const = default;
};

struct Reply {
    StoreStatus status = StoreStatus::done;
    std::int64_t number = 0;
    std::vector<std::string> fields;  // in a refusal: one field, the text

    [[nodiscard]] bool operator==(const Reply&) const = default;
};

[[nodiscard]] std::string_view to_string(Kind kind);

// Encodes a message with its length. The message must be within the bounds: the client checks its requests, and the
// server's replies are always within them.
[[nodiscard]] std::string encode(const StoreRequest& request);
[[nodiscard]] std::string encode(const Reply& reply);
// Bytes that a field adds to a reply besides its content, and bytes of a reply without fields after its length.
inline constexpr std::size_t field_overhead_bytes = 4;
inline constexpr std::size_t bare_reply_bytes = 12;

// Decode a message without its length. They accept only complete messages: every field is within its bounds, the kind
// has the fields that it requires, and encoding the result gives the same bytes.
[[nodiscard]] Outcome<StoreRequest> decode_request(std::string_view message);
[[nodiscard]] Outcome<Reply> decode_reply(std::string_view message);

// Cuts a stream into messages.
//
// Ownership: owns the bytes that next() has not returned: less than one message, if next() was called until it returned
//   nullopt.
// Calling order: append(), then next() until it returns nullopt or a refusal. Threads: none.
// Failure: next() returns a refusal, after which the stream is unusable.
class MessageReader {
  public:
    void append(std::string_view bytes);
    // The next message without its length, valid until the next append(). nullopt: it is incomplete. A refusal: the
    // bytes are no message, and the rest of the stream must be ignored.
    [[nodiscard]] Outcome<std::optional<std::string_view>> next();
    // True: a part of a message has arrived.
    [[nodiscard]] bool halfway() const { return at_ < bytes_.size(); }

  private:
    std::string bytes_;
    std::size_t at_ = 0;
};

}  // namespace atp::store
