// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "control/coverage.h"
#include "control/in_path_agent.h"
#include "switchd/report.h"
#include "xdp/attachment.h"
#include "xdp/egress_attachment.h"
#include "xdp/kernel_table.h"
#include "xdp/pin_folder.h"

namespace atp::xdp {

struct XdpSwitchConfig {
    std::vector<std::string> interfaces;  // frames that arrive there meet the program
    std::uint64_t memory_bytes = 64'000'000;
    std::uint32_t jobs = 64;
    std::uint8_t level = 0;  // 0: next to workers; 1: where racks meet
    std::uint16_t port = 4790;
    Duration ageing = std::chrono::milliseconds(500);
    Duration hold = std::chrono::seconds(10);  // jobs that nobody speaks of for so long are gone
    std::string pins = "/sys/fs/bpf/atp";
};

// As many as a switch in user space has of the same memory: packets name an aggregator by the table of the switch that
// they are addressed to, and find it in this one.
[[nodiscard]] std::uint32_t aggregators_of(const XdpSwitchConfig& config);

// A switch that nobody addresses: the program on some interfaces, and a thread that learns from what passes whom to
// serve.
//
// Calling order: start() attaches the program; commit(), once nothing else that the caller starts can fail, takes over
// the jobs of an earlier start, detaches the program from all other interfaces and begins to admit jobs; stop() takes
// the program off and forgets everything. A process that ends without stop() leaves the program where it is, at work,
// and the next start() with the same pins goes on with it. If the object is destroyed before commit(), the jobs and the
// programs of an earlier start stay as they were, and nothing else stays but empty clsact qdiscs. Threads: start(),
// commit() and stop() from one; snapshot() from any. Failure: start() says why, and leaves behind what it has found.
// stop() says where the program could not be taken off; it absorbs nothing there any more, and the next start() with
// the same pins takes it up.
class XdpSwitch {
  public:
    [[nodiscard]] static Result<std::unique_ptr<XdpSwitch>> start(const XdpSwitchConfig& config);
    ~XdpSwitch();
    void commit();
    XdpSwitch(const XdpSwitch&) = delete;
    XdpSwitch& operator=(const XdpSwitch&) = delete;

    [[nodiscard]] std::vector<Error> stop();
    [[nodiscard]] switchd::ShardSnapshot snapshot() const;
    [[nodiscard]] const std::vector<Attachment>& attachments() const { return attachments_; }

  private:
    XdpSwitch(const XdpSwitchConfig& config, PinFolder folder, std::unique_ptr<KernelSwitch> kernel);
    [[nodiscard]] Result<void> attach();
    void end_work();
    void undo();
    void run();
    void handle_message(std::span<const std::byte> message, Time now);
    void expire(Time now);
    void judge(Time now);

    XdpSwitchConfig config_;
    PinFolder folder_;
    mutable std::mutex mutex_;  // of who is admitted; never waited for by a packet
    std::unique_ptr<KernelSwitch> kernel_;
    control::Admission admission_;
    control::Coverage coverage_;
    Time judges_next_{};
    std::vector<Attachment> attachments_;
    std::vector<EgressAttachment> egress_attachments_;
    std::vector<std::string> missing_;  // where what leaves is not looked at, and why
    std::atomic<bool> stopping_{false};
    std::thread thread_;
    bool stopped_ = false;
};

}  // namespace atp::xdp
