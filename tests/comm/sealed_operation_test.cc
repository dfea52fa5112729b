// SPDX-License-Identifier: Apache-2.0
// Jobs whose ranks prove their sums, over switches that lie about them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "base/hash.h"
#include "control/tenants.h"
#include "fabric.h"
#include "keys/key_file.h"
#include "net/udp_socket.h"
#include "support/fails.h"
#include "values.h"
#include "wire/packet.h"

namespace atp::test {
namespace {

using numeric::ElementType;
using testing::HasSubstr;

// A packet that the switch is about to handle, or has just written for `to`.
struct Passing {
    std::span<std::byte> bytes;
    bool arrived = false;
    wire::Address peer{};

    // One that is sent for the first time: its receiver may have no use for others, and a lie would not matter.
    [[nodiscard]] bool is(std::uint8_t type, unsigned least_lanes) const {
        wire::Packet packet;
        if (wire::decode(bytes, packet) != wire::DecodeError::none) return false;
        const bool is_again = type == ATP_TYPE_ACK ? packet.header.worker != ATP_WORKER_ALL
                                                   : (packet.header.flags & ATP_FLAG_RESEND) != 0;
        return packet.header.type == type && packet.lane_count() >= least_lanes && !is_again;
    }
    [[nodiscard]] std::uint16_t flags() const { return wire::load_u16(bytes.data() + ATP_OFFSET_FLAGS); }
    void set_flags(std::uint16_t flags) const { wire::store_u16(bytes.data() + ATP_OFFSET_FLAGS, flags); }
    void set_lanes(std::uint8_t lanes) const { bytes[ATP_OFFSET_LANES] = std::byte{lanes}; }
    void add_to_lane(std::size_t lane, std::uint32_t by) const {
        std::byte* const at = bytes.data() + ATP_HEADER_BYTES + lane * ATP_LANE_BYTES;
        wire::store_u32(at, wire::load_u32(at) + by);
    }
};
using Lie = std::function<void(const Passing&)>;

// The socket of a switch that lies.
//
// Ownership: owns the transport. Threads, failure: as net::Transport; `lie` runs on the thread of the switch.
class LyingTransport final : public net::Transport {
  public:
    LyingTransport(std::unique_ptr<net::Transport> transport, Lie lie)
        : transport_(std::move(transport)), lie_(std::move(lie)) {}

    void expect(std::uint32_t packets) override { transport_->expect(packets); }
    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) override {
        return reserved_ = transport_->reserve(max_bytes);
    }
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) override {
        last_.assign(reserved_.begin(), reserved_.begin() + static_cast<std::ptrdiff_t>(bytes));
        ecn_ = ecn;
        lie_({.bytes = reserved_.first(bytes), .arrived = false, .peer = to});
        transport_->commit(bytes, to, ecn);
    }
    [[nodiscard]] bool borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) override {
        const std::vector<std::byte> copy(bytes.begin(), bytes.end());
        return send_copy(copy, to, ecn);
    }
    [[nodiscard]] bool repeat(const wire::Address& to) override {
        const std::vector<std::byte> copy = last_;
        return send_copy(copy, to, ecn_);
    }
    net::Flush flush() override { return transport_->flush(); }
    [[nodiscard]] std::uint32_t waiting() const override { return transport_->waiting(); }
    [[nodiscard]] Result<std::size_t> receive(std::span<wire::Datagram> datagrams) override {
        auto count = transport_->receive(datagrams);
        for (std::size_t at = 0; count && at < *count; ++at) {
            lie_({.bytes = datagrams[at].bytes, .arrived = true, .peer = {}});
        }
        return count;
    }
    [[nodiscard]] bool has_more() const override { return transport_->has_more(); }
    [[nodiscard]] Time poll_timeout() const override { return transport_->poll_timeout(); }
    void reach_group(const wire::Address& group, const wire::Address& from) override {
        transport_->reach_group(group, from);
    }
    void forget_group(const wire::Address& group) override { transport_->forget_group(group); }
    [[nodiscard]] const wire::Address& local() const override { return transport_->local(); }
    [[nodiscard]] int descriptor() const override { return transport_->descriptor(); }
    [[nodiscard]] const net::UdpReport& report() const override { return transport_->report(); }
    [[nodiscard]] const net::UdpCounters& counters() const override { return transport_->counters(); }

  private:
    bool send_copy(const std::vector<std::byte>& copy, const wire::Address& to, wire::Ecn ecn) {
        if (reserve(copy.size()).size() < copy.size()) return false;
        std::ranges::copy(copy, reserved_.begin());
        commit(copy.size(), to, ecn);
        return true;
    }

    std::unique_ptr<net::Transport> transport_;
    Lie lie_;
    std::span<std::byte> reserved_;
    std::vector<std::byte> last_;
    wire::Ecn ecn_{};
};

switchd::SwitchNodeConfig lying_switch(Lie lie) {
    switchd::SwitchNodeConfig config = small_switch();
    config.open_transport = [lie = std::move(lie)](const net::UdpConfig& udp,
                                                   std::uint32_t) -> Result<std::unique_ptr<net::Transport>> {
        auto socket = net::UdpSocket::open(udp);
        if (!socket) return tl::unexpected(socket.error());
        return std::make_unique<LyingTransport>(*std::move(socket), lie);
    };
    return config;
}

class SealedOperation : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (std::filesystem::temp_directory_path() / "atp-sealed-XXXXXX").string();
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
        ASSERT_TRUE(keys::write_key_file(folder_ / "key", key_));
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    // A switch that has the ranks' tenant: a rank with a key joins no other.
    [[nodiscard]] std::unique_ptr<switchd::SwitchNode> start_asking(switchd::SwitchNodeConfig config) const {
        config.tenants = std::make_shared<const control::Tenants>(
            std::vector{control::Tenant{.name = "t", .keys = {key_for_switch(key_, "leaf")}}});
        return start(config);
    }
    [[nodiscard]] comm::Options sealed_options(tensor::Scaling scaling = tensor::Scaling::dynamic) const {
        comm::Options options = small_options();
        options.scaling = scaling;
        options.key_file = folder_ / "key";
        options.seal = comm::Seal::operation;
        options.join_timeout = longest_wait;
        options.timeout = longest_wait;
        return options;
    }
    // Every rank calls `body`, and then the results of all are here.
    [[nodiscard]] static std::vector<Error> errors_of(const std::string& switch_address, const comm::Options& options,
                                                      std::size_t elements, std::uint32_t world = world_) {
        std::vector<Error> errors(world);
        Job job(world, {switch_address}, options);
        job.run([&](comm::Communicator& communicator) {
            std::vector<float> values(elements, 1.0F);
            errors[communicator.rank()] = error_of(sum_in_place(communicator, values));
        });
        return errors;
    }

    // About the nth packet of its kind that belongs to the tensor: others have fewer lanes, or no int32.
    static void demand(unsigned kind, unsigned nth, const Passing& passing, std::atomic<unsigned>& seen) {
        const bool arrives = kind == 0;
        if (passing.arrived != arrives || !passing.is(arrives ? ATP_TYPE_GRADIENT : ATP_TYPE_ACK, small_lanes)) return;
        if (seen++ != nth) return;
        if (arrives) return passing.set_flags(passing.flags() | ATP_FLAG_OVERFLOW);
        passing.set_lanes(atp_lanes_of(ATP_DTYPE_INT32, ATP_DTYPE_FLOAT32));
    }
    static constexpr unsigned demands_ = 2;
    static constexpr std::uint32_t world_ = 3;
    crypto::TenantKey key_{.id = 7, .tenant = "t", .at_switch = {}, .key = keys::random_key()};
    std::filesystem::path folder_;
};

TEST_F(SealedOperation, SumsOfEveryTypeAreRightAndProven) {
    const auto node = start_asking(small_switch());
    for (const auto scaling : {tensor::Scaling::fixed, tensor::Scaling::dynamic}) {
        Job job(world_, {address_of(*node)}, sealed_options(scaling));
        job.options().channels = scaling == tensor::Scaling::fixed ? 1 : 3;
        job.run([&](comm::Communicator& communicator) {
            for (std::uint32_t seed = 0; seed < 3; ++seed) {
                std::vector<float> values(several_windows);
                for (std::size_t at = 0; at < values.size(); ++at) values[at] = static_cast<float>(at % 1000) / 512;
                ASSERT_TRUE(succeeds(sum_in_place(communicator, values, comm::Reduction::average)));
                for (std::size_t at = 0; at < values.size(); ++at) {
                    ASSERT_NEAR(values[at], static_cast<float>(at % 1000) / 512, 1e-6) << at;
                }
                std::vector<std::int32_t> integers(several_windows, -5);
                ASSERT_TRUE(succeeds(sum_in_place(communicator, integers)));
                EXPECT_EQ(integers, std::vector<std::int32_t>(several_windows, -15));
                std::vector<std::int64_t> wide(100, std::int64_t{1} << 62U);
                ASSERT_TRUE(succeeds(sum_in_place(communicator, wide)));
                EXPECT_EQ(wide.back(), static_cast<std::int64_t>((std::uint64_t{1} << 62U) * 3));
                std::vector<double> doubles(17, 0.25);
                ASSERT_TRUE(succeeds(sum_in_place(communicator, doubles)));
                EXPECT_EQ(doubles, std::vector<double>(17, 0.75));
                std::vector<std::uint32_t> bytes(333, communicator.rank() == 1 ? 0x80000001U : 7U);
                ASSERT_TRUE(succeeds(communicator.broadcast(bytes.data(), bytes.size() * 4, 1)));
                EXPECT_EQ(bytes, std::vector<std::uint32_t>(333, 0x80000001U));
                ASSERT_TRUE(succeeds(communicator.barrier()));
            }
        });
    }
}

// Four ranks on two hosts: each rank proves by itself, and the first of its host has the channels.
TEST_F(SealedOperation, RanksThatShareMemoryProveTooAndAreLiedToTogether) {
    std::atomic<bool> lies{false};
    const auto node = start_asking(lying_switch([&](const Passing& passing) {
        if (passing.arrived && passing.is(ATP_TYPE_GRADIENT, small_lanes) &&
            (passing.flags() & ATP_FLAG_ONE_SENDER) == 0 && lies.exchange(false)) {
            passing.add_to_lane(0, 1);
        }
    }));
    const std::string address = address_of(*node);
    Job job(4, {address}, sealed_options());
    run_with(
        job,
        [&](std::uint32_t rank) {
            comm::Options options = job.options_of(rank);
            options.host_level = true;
            options.host_name = "host " + std::to_string(rank / 2);
            return options;
        },
        [&](comm::Communicator& communicator) {
            ASSERT_EQ(communicator.formation().host_ranks, 2U);
            std::vector<float> values(several_windows, 0.5F);
            ASSERT_TRUE(succeeds(sum_in_place(communicator, values)));
            EXPECT_EQ(values, std::vector<float>(several_windows, 2.0F));
            ASSERT_TRUE(succeeds(communicator.barrier()));
            if (communicator.rank() == 0) lies = true;
            ASSERT_TRUE(succeeds(communicator.barrier()));
            const Error error = error_of(sum_in_place(communicator, values));
            EXPECT_EQ(error.reason, Reason::forged) << to_string(error);
            EXPECT_EQ(error.address, address);
            EXPECT_THAT(error_of(communicator.barrier()).text, HasSubstr("an earlier error closed this communicator"));
        });
}

TEST_F(SealedOperation, NumbersThatAreNotFiniteComeOutAsTheyWouldWithoutTheSeal) {
    const auto node = start_asking(small_switch());
    Job job(world_, {address_of(*node)}, sealed_options());
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    job.run([&](comm::Communicator& communicator) {
        const bool first = communicator.rank() == 0;
        std::vector<float> values(several_windows, 1.0F);
        values[5] = first ? nan : 1.0F;
        values[70] = first ? infinity : 1.0F;
        values[71] = first ? infinity : -infinity;
        values[5000] = -infinity;
        values[80] = std::ldexp(1.0F, 126 - 2);  // the span of this number has a scale that suits it
        ASSERT_TRUE(succeeds(sum_in_place(communicator, values)));
        EXPECT_TRUE(std::isnan(values[5]) && std::isnan(values[71]));
        EXPECT_EQ(values[70], infinity);
        EXPECT_EQ(values[5000], -infinity);
        EXPECT_EQ(values[80], std::ldexp(3.0F, 126 - 2));
        EXPECT_TRUE(std::isfinite(values[4]) && std::isfinite(values[6]) && std::isfinite(values[72]));
    });
}

// What a switch can change: a lane that a rank sent, the sum that it sends to all or to one, a sealed word.
TEST_F(SealedOperation, EveryChangedLaneIsReportedByAllRanksWhichNameTheSwitch) {
    struct Row {
        const char* what;
        std::uint8_t type;
        bool arrived;
        unsigned nth;  // the lie is about this packet of its kind
        std::uint32_t by;
    };
    const std::vector<Row> rows{{"a gradient", ATP_TYPE_GRADIENT, true, 20, 1},
                                {"the upper bit of a gradient", ATP_TYPE_GRADIENT, true, 21, 0x80000000},
                                {"the scales, before the tensor", ATP_TYPE_GRADIENT, true, 0, 1},
                                {"a result for one rank", ATP_TYPE_ACK, false, 31, 1},
                                {"the scales for one rank", ATP_TYPE_ACK, false, 1, 1}};
    for (const Row& row : rows) {
        SCOPED_TRACE(row.what);
        std::atomic<unsigned> seen{0};
        const auto node = start_asking(lying_switch([&](const Passing& passing) {
            if (passing.arrived != row.arrived || !passing.is(row.type, 32)) return;
            if (seen++ == row.nth) passing.add_to_lane(3, row.by);
        }));
        const std::string address = address_of(*node);
        for (const Error& error : errors_of(address, sealed_options(), 6000)) {
            EXPECT_EQ(error.reason, Reason::forged) << to_string(error);
            EXPECT_EQ(error.address, address);
            EXPECT_THAT(error.text, HasSubstr("this switch changed it, or a rank with the key did"));
        }
        EXPECT_GT(seen, row.nth);
    }
}

// A demand that switches have no reason for: the sums stay right, and are not delivered as such.
TEST_F(SealedOperation, NeedlessDemandsAreReportedByAllRanksWhichNameTheSwitch) {
    for (unsigned kind = 0; kind < demands_; ++kind) {
        std::atomic<unsigned> seen{0};
        const auto node = start_asking(lying_switch([&](const Passing& passing) { demand(kind, 30, passing, seen); }));
        const std::string address = address_of(*node);
        for (const Error& error : errors_of(address, sealed_options(), 6000)) {
            EXPECT_EQ(error.reason, Reason::forged) << kind << ": " << to_string(error);
            EXPECT_EQ(error.address, address);
            EXPECT_THAT(error.text, HasSubstr("asked for floats or claimed an overflow"));
        }
    }
}

// Each operation needs a job of its own. CMakeLists.txt also runs a thousand, with the label long.
TEST_F(SealedOperation, ALieInAnyOperationIsReported) {
    constexpr std::uint32_t ranks = 2;
    const char* const variable = std::getenv("ATP_SEALED_OPERATIONS");
    const auto operations = variable == nullptr ? 12UL : std::strtoul(variable, nullptr, 10);
    std::uint32_t draw = 1;
    for (unsigned number = 0; number < operations; ++number) {
        std::atomic<unsigned> seen{0};
        draw = mix(draw + number);
        const unsigned kind = number % (demands_ + 1);
        const unsigned nth = draw % 30;
        const std::uint32_t by = std::uint32_t{1} << (draw >> 16U) % 32;
        const auto node = start_asking(lying_switch([&](const Passing& passing) {
            if (kind < demands_) return demand(kind, nth, passing, seen);
            if (passing.arrived && passing.is(ATP_TYPE_GRADIENT, 32) && seen++ == nth) passing.add_to_lane(nth, by);
        }));
        const std::string address = address_of(*node);
        for (const Error& error : errors_of(address, sealed_options(), 3000, ranks)) {
            ASSERT_EQ(error.reason, Reason::forged) << number << ": " << to_string(error);
            ASSERT_EQ(error.address, address);
        }
    }
}

// One of those in which ranks get different parts. `values` has several_windows elements for each rank.
struct OfOwners {
    const char* name;
    std::function<Result<comm::Handle>(comm::Communicator&, std::vector<float>& values)> call;
};

std::vector<OfOwners> operations_of_owners() {
    return {
        {"reduce_scatter",
         [](comm::Communicator& communicator, std::vector<float>& values) {
             const std::vector<std::size_t> counts(communicator.world(), several_windows);
             return communicator.reduce_scatter(values.data(), values.data() + communicator.rank() * counts[0], counts,
                                                ElementType::float32, comm::Reduction::sum);
         }},
        {"all_gather",
         [](comm::Communicator& communicator, std::vector<float>& values) {
             const std::vector<std::size_t> bytes(communicator.world(), several_windows * sizeof(float));
             return communicator.all_gather(values.data() + communicator.rank() * several_windows, values.data(),
                                            bytes);
         }},
        {"reduce",
         [](comm::Communicator& communicator, std::vector<float>& values) {
             return communicator.reduce({values.data(), values.data(), values.size()}, ElementType::float32,
                                        comm::Reduction::sum, 1);
         }},
        {"all_reduce of maxima", [](comm::Communicator& communicator, std::vector<float>& values) {
             const comm::Buffer buffer{values.data(), values.data(), several_windows};
             return communicator.all_reduce({&buffer, 1}, numeric::FoldType::float32, numeric::FoldOperation::maximum);
         }}};
}

TEST_F(SealedOperation, EachOperationOfOwnersIsRightAndProven) {
    const auto node = start_asking(small_switch());
    for (const auto scaling : {tensor::Scaling::fixed, tensor::Scaling::dynamic}) {
        for (const bool shares : {false, true}) {
            Job job(4, {address_of(*node)}, sealed_options(scaling));
            run_with(
                job,
                [&](std::uint32_t rank) {
                    comm::Options options = job.options_of(rank);
                    options.host_level = shares;
                    options.host_name = "host " + std::to_string(rank / 2);
                    return options;
                },
                [&](comm::Communicator& communicator) {
                    work_through(communicator);
                    const float own = static_cast<float>(communicator.rank()) + 0.25F;
                    std::vector<float> whole(4 * several_windows, own);
                    for (const OfOwners& operation : operations_of_owners()) {
                        std::vector<float> values = whole;
                        ASSERT_TRUE(succeeds(operation.call(communicator, values))) << operation.name;
                        const std::string name = operation.name;
                        const std::size_t first = communicator.rank() * several_windows;
                        if (name == "reduce_scatter") {
                            EXPECT_EQ(values[first + 77], 7.0F);
                        }
                        if (name == "all_gather") {
                            EXPECT_EQ(values[3 * several_windows + 77], 3.25F);
                        }
                        if (name == "reduce") {
                            EXPECT_EQ(values[77], communicator.rank() == 1 ? 7.0F : own);
                        }
                        if (name == "all_reduce of maxima") {
                            EXPECT_EQ(values[77], 3.25F);
                        }
                    }
                });
        }
    }
}

// Also of a packet that only one rank gets, as nobody else sees what is in it.
TEST_F(SealedOperation, ALieInAnyOperationOfOwnersIsReportedByAllRanks) {
    for (const OfOwners& operation : operations_of_owners()) {
        for (const bool arrived : {true, false}) {
            SCOPED_TRACE(std::string(operation.name) + (arrived ? ", as sent" : ", as received by one rank"));
            std::atomic<unsigned> seen{0};
            const auto node = start_asking(lying_switch([&](const Passing& passing) {
                if (passing.arrived != arrived || !passing.is(arrived ? ATP_TYPE_GRADIENT : ATP_TYPE_ACK, 32)) return;
                if (seen++ == 40) passing.add_to_lane(3, 1);
            }));
            const std::string address = address_of(*node);
            Job job(world_, {address}, sealed_options());
            job.run([&](comm::Communicator& communicator) {
                std::vector<float> values(world_ * several_windows, 1.0F);
                const Error error = error_of(operation.call(communicator, values));
                EXPECT_EQ(error.reason, Reason::forged) << to_string(error);
                EXPECT_EQ(error.address, address);
                EXPECT_THAT(error_of(communicator.barrier()).text,
                            HasSubstr("an earlier error closed this communicator"));
            });
            EXPECT_GT(seen, 40U);
        }
    }
}

TEST_F(SealedOperation, WhatCannotBeSealedIsRefused) {
    const auto node = start_asking(small_switch());
    Job job(world_, {address_of(*node)}, sealed_options());
    job.run([&](comm::Communicator& communicator) {
        std::vector<std::int32_t> large(10, std::numeric_limits<std::int32_t>::max());
        const Error error = error_of(sum_in_place(communicator, large));
        EXPECT_EQ(error.reason, Reason::unsupported) << to_string(error);
        EXPECT_THAT(error.text, HasSubstr("sums of int32 may leave 32 bits: use int64"));
    });
}

TEST_F(SealedOperation, NumberThatDoesNotFitAFixedScaleCannotBeSealed) {
    const auto node = start_asking(small_switch());
    Job job(world_, {address_of(*node)}, sealed_options(tensor::Scaling::fixed));
    job.run([&](comm::Communicator& communicator) {
        std::vector<float> values(10, communicator.rank() == 2 ? 30.0F : 1.0F);
        const Error error = error_of(sum_in_place(communicator, values));
        EXPECT_EQ(error.reason, Reason::unsupported) << to_string(error);
        EXPECT_THAT(error.text, HasSubstr("a number has no integer at the fixed scale: use dynamic scaling"));
    });
}

TEST_F(SealedOperation, NeedsAKey) {
    const auto node = start_asking(small_switch());
    comm::Options options = sealed_options();
    options.key_file.clear();
    Job job(1, {address_of(*node)}, options);
    EXPECT_TRUE(fails(
        job.form(0),
        {.operation = Operation::open, .reason = Reason::malformed, .text = HasSubstr("seal=operation needs a key")}));
}

}  // namespace
}  // namespace atp::test
