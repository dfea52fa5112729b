// SPDX-License-Identifier: Apache-2.0
// A cluster of two teams on loopback, and who reads its packets.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/switch_report.h"
#include "crypto/tenant_key.h"
#include "fabric.h"
#include "program.h"
#include "relay.h"
#include "values.h"
#include "wire/control.h"

namespace atp::test {

// A process of `atp switch`, which the destructor ends.
class SwitchProcess {
  public:
    explicit SwitchProcess(const std::vector<std::string>& flags, const std::string& address = free_port());

    [[nodiscard]] const wire::Address& address() const { return address_; }
    // Fails the test if none comes.
    [[nodiscard]] client::SwitchReport report() const;
    // Children of the job's channel 0; 0: the switch does not know the job.
    [[nodiscard]] std::uint32_t members_of(std::uint32_t job) const;

  private:
    wire::Address address_;
    Program program_;
};

// Reads every datagram between ranks and their switch, and sends in the name of both.
//
// Ownership: owns a relay, at whose address ranks find the switch. Threads: `change` runs on the relay's, and any
// thread calls the functions.
class Wiretap {
  public:
    struct Datagram {
        Way way = Way::there;
        wire::Address client;
        Bytes bytes;
    };
    // May change what passes; recorded() has it as it was sent.
    using Change = std::function<void(Way way, const wire::Address& client, Bytes& bytes)>;

    explicit Wiretap(const wire::Address& server, Change change = {});

    [[nodiscard]] std::string address() const { return to_string(relay_.address()); }
    [[nodiscard]] std::vector<Datagram> recorded() const;
    void send(const Datagram& datagram) { relay_.send(datagram.way, datagram.client, datagram.bytes); }

    // The last message of this kind of each client, in either direction.
    template <class Message>
    [[nodiscard]] std::vector<std::pair<wire::Address, Message>> last() const {
        std::vector<std::pair<wire::Address, Message>> found;
        const std::lock_guard lock(changing_);
        for (const Datagram& datagram : recorded_) {
            auto message = wire::decode<Message>(datagram.bytes);
            if (!message) continue;
            std::erase_if(found, [&](const auto& each) { return each.first == datagram.client; });
            found.emplace_back(datagram.client, *std::move(message));
        }
        return found;
    }
    // The last GRADIENT that a rank sent.
    [[nodiscard]] std::optional<atp_header> last_gradient() const;

  private:
    void keep(Way way, const wire::Address& client, const Bytes& bytes);

    mutable std::mutex changing_;
    std::vector<Datagram> recorded_;
    Relay relay_;
};

// Keys of the teams vision and speech, which the switch leaf-1 serves.
class Site : public testing::Test {
  protected:
    void SetUp() override;
    void TearDown() override { std::filesystem::remove_all(folder_); }

    // Flags of a switch with both tenants, and of one without.
    [[nodiscard]] std::vector<std::string> asking() const { return {"--tenants", folder_ / "tenants.toml"}; }
    [[nodiscard]] static std::vector<std::string> open() { return {}; }
    // "": without a key.
    [[nodiscard]] comm::Options options_of(const std::string& tenant) const;

    crypto::TenantKey vision_;
    crypto::TenantKey speech_;
    std::filesystem::path folder_;
};

// Each rank sums `rounds` times, and all sums are right.
void expect_sums(const std::vector<std::unique_ptr<comm::Communicator>>& ranks, std::uint32_t rounds);
// A job of two ranks forms and sums.
void expect_new_job(const std::string& switch_address, const comm::Options& options);

}  // namespace atp::test
