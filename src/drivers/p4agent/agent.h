// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "client/switch_report.h"
#include "control/data_plane_agent.h"
#include "control/timing.h"
#include "p4agent/control_port.h"
#include "p4agent/pipeline_plane.h"
#include "wire/address.h"

namespace atp::p4agent {

struct PipelineAgentConfig {
    wire::Address thrift;        // of simple_switch
    std::string control_device;  // the other end of port 64 of simple_switch
    std::uint32_t jobs = 64;     // admitted at the same time, at most
    std::uint8_t level = 0;      // 0: next to workers; 1: where racks meet
    std::uint16_t port = 4790;   // UDP port of either end
    Duration hold = control::timing.hold;
    std::function<void()> enter_thread{};  // called first by the thread; empty: nothing is
};

// Agent beside a pipeline in the path: a thread that learns from copies of control messages which jobs the pipeline
// serves. If the pipeline restarts, the agent connects again, and the next JOINs restore the jobs.
//
// Ownership: owns the connection, the socket and the thread. Calling order: start(), stop().
// Threads: one thread calls start() and stop(). Any thread calls snapshot().
// Failure: start() returns the reason.
class PipelineAgent {
  public:
    [[nodiscard]] static Result<std::unique_ptr<PipelineAgent>> start(const PipelineAgentConfig& config);
    ~PipelineAgent() { stop(); }
    PipelineAgent(const PipelineAgent&) = delete;
    PipelineAgent& operator=(const PipelineAgent&) = delete;

    // Ends the thread, and removes the jobs from the pipeline.
    void stop();
    [[nodiscard]] client::ShardReport snapshot() const;

  private:
    PipelineAgent(const PipelineAgentConfig& config, ControlPort control_port, std::unique_ptr<PipelinePlane> plane);
    void run();
    void serve(std::unique_ptr<PipelinePlane> plane);
    void report();
    void connect_again();

    PipelineAgentConfig config_;
    ControlPort control_port_;
    // The thread's own.
    std::unique_ptr<PipelinePlane> plane_;
    std::unique_ptr<control::DataPlaneAgent> jobs_;
    Time reports_next_{};
    mutable std::mutex mutex_;
    client::ShardReport report_;  // guarded by `mutex_`
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace atp::p4agent
