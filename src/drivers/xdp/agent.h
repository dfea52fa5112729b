// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/switch_report.h"
#include "control/data_plane_agent.h"
#include "control/timing.h"
#include "xdp/attachment.h"
#include "xdp/filter_attachment.h"
#include "xdp/kernel_table.h"
#include "xdp/pin_folder.h"
#include "xdp/port_marks.h"

namespace atp::xdp {

struct AgentConfig {
    std::vector<std::string> interfaces;                // the program inspects frames that arrive on these
    std::uint64_t memory_bytes = 64'000'000;            // of all aggregators
    std::uint32_t jobs = 64;                            // admitted at the same time, at most
    std::uint8_t level = 0;                             // 0: next to workers; 1: where racks meet
    std::uint16_t port = 4790;                          // UDP port of either end
    Duration ageing = std::chrono::milliseconds(500);   // as protocol::SwitchConfig
    Duration hold = control::timing.hold;               // a job without a JOIN for this long is removed
    std::shared_ptr<const control::Tenants> tenants{};  // nullptr: all jobs share the table
    std::string pins = "/sys/fs/bpf/atp";               // folder on a bpffs; keeps the maps between starts
    std::optional<LinkRates> link_rates = LinkRates{};  // nullopt: no port marks packets
    std::function<void()> enter_thread{};  // called first by the thread, which uses maps; empty: nothing is
};

// As many aggregators as a switch in user space has with the same memory. A packet carries an index into the table of
// the switch that it is addressed to, and this table must have that index.
[[nodiscard]] std::uint32_t aggregators_of(const AgentConfig& config);

// Switch in the path, without an address. It consists of the program on some interfaces, and a thread that learns from
// passing control messages which jobs to serve.
//
// Ownership: owns the kernel's table, its programs on the interfaces and the thread. No other process may have the pin
//   folder.
// Calling order: start() attaches the program. When nothing else of the caller's start can fail, commit() takes over
//   the jobs of an earlier start, detaches the program from all other interfaces, and begins to admit jobs. stop()
//   detaches the program and removes all state. If the process is killed, the program stays attached and aggregates,
//   and the next start() with the same pins continues with its state. If the object is destroyed before commit(), the
//   jobs and programs of an earlier start stay as they were. Only empty clsact qdiscs stay of this start.
// Threads: one thread calls start(), commit(), set_tenants() and stop(). Any thread calls snapshot().
// Failure: start() returns the reason and leaves the state of an earlier start unchanged. stop() returns the interfaces
//   from which the program could not be detached. The program absorbs nothing there, and the next start() with the same
//   pins takes it over.
class Agent {
  public:
    [[nodiscard]] static Result<std::unique_ptr<Agent>> start(const AgentConfig& config);
    ~Agent();
    void commit();
    void set_tenants(std::shared_ptr<const control::Tenants> tenants);
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;

    [[nodiscard]] std::vector<Error> stop();
    [[nodiscard]] client::ShardReport snapshot() const;
    [[nodiscard]] const std::vector<Attachment>& attachments() const { return attachments_; }

  private:
    Agent(const AgentConfig& config, PinFolder folder, std::unique_ptr<KernelTable> kernel);
    [[nodiscard]] Result<void> attach();
    [[nodiscard]] bool filter(const std::string& interface, FilterPlace place, std::vector<std::string>& refusals);
    void end_work();
    void undo();
    void run();

    AgentConfig config_;
    PinFolder folder_;
    mutable std::mutex mutex_;  // guards the admitted jobs; packets never wait for it
    std::unique_ptr<KernelTable> kernel_;
    std::unique_ptr<control::DataPlane> plane_;  // of `kernel_`
    control::DataPlaneAgent jobs_;
    std::vector<Attachment> attachments_;
    std::vector<FilterAttachment> filters_;
    std::optional<PortMarks> marks_;
    std::vector<std::string> missing_;         // interfaces without the egress program, and why
    std::vector<std::string> without_copies_;  // without the program of copies
    std::atomic<bool> stopping_{false};
    std::thread thread_;
    bool stopped_ = false;
};

}  // namespace atp::xdp
