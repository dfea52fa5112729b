// SPDX-License-Identifier: Apache-2.0
// Calls of a Thrift server: the binary protocol over TCP, with multiplexed services, as BMv2 speaks it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/descriptor.h"
#include "wire/address.h"

namespace atp::p4agent {

// A value in a reply: a number, bytes, a list or a struct.
struct ThriftValue {
    std::int64_t number = 0;
    std::string text;
    std::vector<ThriftValue> list;
    std::map<std::int16_t, ThriftValue> fields;

    // A field without a value counts as an empty one.
    [[nodiscard]] const ThriftValue& field(std::int16_t number_of_field) const;
};

// The arguments of a call, numbered from 1 in the order in which they are added.
class ThriftArguments {
  public:
    ThriftArguments& flag(bool value);
    ThriftArguments& number32(std::int32_t value);
    ThriftArguments& number64(std::int64_t value);
    ThriftArguments& text(std::string_view value);
    ThriftArguments& texts(const std::vector<std::string>& values);
    // Keys of a table of BMv2 that are all exact: a list of BmMatchParam.
    ThriftArguments& exact_keys(const std::vector<std::string>& keys);
    // A struct whose field 1 is a number of 32 bits, or that has no field.
    ThriftArguments& struct_of(std::int32_t field);
    ThriftArguments& empty_struct();

    [[nodiscard]] const std::string& bytes() const { return bytes_; }

  private:
    ThriftArguments& add(std::uint8_t type, std::string_view value);

    std::string bytes_;
    std::int16_t count_ = 0;
};

// Ownership: owns the connection. Calling order: open(), then call(). Threads: one.
// Failure: Reason::rejected is an exception of the server, which later calls survive. After any other error the
//   connection is unusable.
class ThriftConnection {
  public:
    [[nodiscard]] static Result<ThriftConnection> open(const wire::Address& server, Duration timeout);
    // The result; an empty value for a function without one.
    [[nodiscard]] Result<ThriftValue> call(std::string_view service, std::string_view function,
                                           const ThriftArguments& arguments);

  private:
    explicit ThriftConnection(net::Descriptor socket, std::string peer)
        : socket_(std::move(socket)), peer_(std::move(peer)) {}
    [[nodiscard]] bool send(std::string_view bytes) const;
    [[nodiscard]] bool take(std::size_t count, std::string& bytes);
    [[nodiscard]] bool take_number(std::size_t bytes, std::int64_t& number);
    [[nodiscard]] bool take_value(std::uint8_t type, ThriftValue& value, unsigned depth);
    [[nodiscard]] bool take_fields(ThriftValue& value, unsigned depth);

    net::Descriptor socket_;
    std::string peer_;
    std::int32_t calls_ = 0;
};

}  // namespace atp::p4agent
