// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "p4agent/thrift.h"
#include "wire/address.h"

namespace atp::p4agent {

// Port of the pipeline at which the agent gets copies of control messages.
inline constexpr std::int32_t control_port_number = 64;

// What the loaded program has: sizes of its registers and counters.
struct PipelineProgram {
    enum class Kind : std::uint8_t {
        one_pass,  // p4/atp.v1model.p4
        passes,    // p4/pipeline.v1model.p4
    };
    Kind kind = Kind::one_pass;
    std::uint32_t aggregators = 0;
    std::uint32_t lanes = 0;  // of an aggregator
    std::uint32_t jobs = 0;
};
// From the program as BMv2 reports it (JSON). Nullopt if it is neither of them.
[[nodiscard]] std::optional<PipelineProgram> program_of(const std::string& json);

// An unsigned number as a key or an argument of a table.
[[nodiscard]] std::string big_endian(std::uint64_t value, unsigned bytes);

// A running simple_switch: its tables, registers and counters. Names are those inside the control AtpIngress.
//
// Ownership: owns the connection.
// Calling order: open() also creates the group and the session that the programs use.
// Threads: one.
// Failure: open() returns the reason. A call that the switch rejects returns nothing. After a call without answer,
//   failed() is true, and the object is of no further use.
class Bmv2 {
  public:
    using Handle = std::int64_t;  // of an entry
    struct Action {
        const char* name;
        std::vector<std::string> arguments;
    };

    [[nodiscard]] static Result<Bmv2> open(const wire::Address& server);

    [[nodiscard]] const PipelineProgram& program() const { return program_; }
    [[nodiscard]] const std::vector<std::string>& interfaces() const { return interfaces_; }
    [[nodiscard]] bool failed() const { return failed_; }

    [[nodiscard]] std::optional<Handle> add_entry(const char* table, const std::vector<std::string>& keys,
                                                  const Action& action);
    void change_entry(const char* table, Handle entry, const Action& action);
    void remove_entry(const char* table, Handle entry);
    void clear_table(const char* table);
    void clear_counter(const char* counter, std::uint32_t index);
    [[nodiscard]] std::uint64_t count(const char* counter, std::uint32_t index);
    // The register of each aggregator.
    [[nodiscard]] std::vector<std::uint64_t> registers(const char* name);
    void clear_register(const char* name, std::uint32_t index);
    void clear_registers(const char* name);

  private:
    explicit Bmv2(ThriftConnection connection) : connection_(std::move(connection)) {}
    [[nodiscard]] Result<void> prepare();
    [[nodiscard]] Result<void> flood_to_all_ports();
    std::optional<ThriftValue> call(const char* service, const char* function, const ThriftArguments& arguments);

    ThriftConnection connection_;
    bool failed_ = false;
    PipelineProgram program_;
    std::vector<std::string> interfaces_;
};

}  // namespace atp::p4agent
