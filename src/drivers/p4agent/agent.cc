// SPDX-License-Identifier: Apache-2.0
#include "p4agent/agent.h"

#include <utility>

#include "net/clock.h"

namespace atp::p4agent {
namespace {

// Longest wait of the thread. It bounds the delay of stop() and of the removal of an expired job.
constexpr std::chrono::milliseconds longest_wait(100);
constexpr std::chrono::seconds time_between_reports(1);

}  // namespace

Result<std::unique_ptr<PipelineAgent>> PipelineAgent::start(const PipelineAgentConfig& config) {
    auto control_port = ControlPort::open(config.control_device, config.port);
    if (!control_port) return tl::unexpected(control_port.error());
    auto plane = PipelinePlane::open(config.thrift);
    if (!plane) return tl::unexpected(plane.error());
    return std::unique_ptr<PipelineAgent>(new PipelineAgent(config, *std::move(control_port), *std::move(plane)));
}

PipelineAgent::PipelineAgent(const PipelineAgentConfig& config, ControlPort control_port,
                             std::unique_ptr<PipelinePlane> plane)
    : config_(config), control_port_(std::move(control_port)) {
    serve(std::move(plane));
    report();
    thread_ = std::thread([this] {
        if (config_.enter_thread) config_.enter_thread();
        run();
    });
}

void PipelineAgent::serve(std::unique_ptr<PipelinePlane> plane) {
    jobs_.reset();
    plane_ = std::move(plane);
    jobs_ = std::make_unique<control::DataPlaneAgent>(*plane_, config_.jobs, config_.hold, config_.level);
}

void PipelineAgent::stop() {
    stopping_ = true;
    if (!thread_.joinable()) return;
    thread_.join();
    for (const control::AdmittedJob& job : plane_->jobs()) plane_->dismiss(job.key());
}

void PipelineAgent::run() {
    while (!stopping_) {
        control_port_.read(longest_wait, [this](const auto& message) { jobs_->handle_message(message, net::now()); });
        jobs_->poll(net::now());
        if (net::now() < reports_next_) continue;
        reports_next_ = net::now() + time_between_reports;
        if (plane_->failed()) connect_again();
        report();
    }
}

void PipelineAgent::connect_again() {
    if (auto plane = PipelinePlane::open(config_.thrift)) serve(*std::move(plane));
}

void PipelineAgent::report() {
    client::ShardReport report;
    report.address = to_string(wire::Address());  // it has none
    report.aggregators = plane_->program().aggregators;
    report.packets = plane_->packets();
    client::KernelReport& kernel = report.kernel.emplace();
    kernel.lanes = plane_->program().lanes;
    kernel.level = config_.level;
    kernel.passing_jobs = jobs_->passing();
    kernel.damaged = plane_->damaged();
    kernel.not_admitted = jobs_->not_admitted();
    for (const std::string& interface : plane_->interfaces())
        kernel.interfaces.emplace_back(interface, plane_->failed() ? "gone" : "p4");
    for (const control::AdmittedJob& job : plane_->jobs()) {
        if (const auto packets = plane_->packets_of(job.key()))
            report.jobs.push_back({.job = job.job, .counters = *packets});
    }
    const std::scoped_lock lock(mutex_);
    report_ = std::move(report);
}

client::ShardReport PipelineAgent::snapshot() const {
    const std::scoped_lock lock(mutex_);
    return report_;
}

}  // namespace atp::p4agent
