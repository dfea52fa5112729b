// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "net/descriptor.h"
#include "observe/log.h"
#include "observe/trace_queue.h"

namespace atp::observe {

struct TraceFileConfig {
    std::string path;
    std::size_t queue_bytes = std::size_t{32} << 20U;  // of each thread that has packets
    std::function<void()> enter_thread{};              // called first by the thread that writes; empty: nothing is
};

// Replaces %r by the rank, %p by the process id and %h by the host name, so that each process has a file of its own.
// %% is a percent sign.
[[nodiscard]] std::string trace_path(std::string_view pattern, std::uint32_t rank);

// A trace of packets (wire/trace.h) in a file. One thread of its own, with the lowest priority, makes the text and
// writes it.
//
// Ownership: owns the file, the thread and all queues. An object that has a queue holds a shared pointer to the file.
// Calling order: open() or shared(); add_queue() for each thread that has packets; the destructor writes what is queued
//   and a note with the totals.
// Threads: any thread calls all functions; each queue has one sender.
// Failure: open() returns why the file cannot be created, or that another process writes it. If a write fails later,
//   the log gets the reason, the file keeps its complete lines, and further events are dropped and counted; close()
//   returns the reason.
class TraceFile {
  public:
    // Replaces the content of the file. Only its owner may read it, because packets show the tokens of jobs. `log`:
    // nullptr: standard error gets the reason of a failure.
    [[nodiscard]] static Result<std::shared_ptr<TraceFile>> open(const TraceFileConfig& config,
                                                                 std::shared_ptr<Log> log);
    // Whether open() can use this path: nothing is there, or a file or a device. The folder is not looked at.
    [[nodiscard]] static Result<void> check(const std::string& path);
    // As open(), but all users of one path in this process share one file, and a later user appends to it.
    [[nodiscard]] static Result<std::shared_ptr<TraceFile>> shared(const TraceFileConfig& config,
                                                                   std::shared_ptr<Log> log);
    ~TraceFile();
    TraceFile(const TraceFile&) = delete;
    TraceFile& operator=(const TraceFile&) = delete;

    // `local`: the name of this node in the trace.
    [[nodiscard]] wire::TraceSink& add_queue(std::string local);

    struct Totals {
        std::uint64_t written = 0;  // events
        std::uint64_t dropped = 0;
        std::optional<Error> failure;  // of a write
    };
    // Writes what is queued, and closes the file. Later events are dropped.
    Totals close();

  private:
    TraceFile(const TraceFileConfig& config, net::Descriptor file, std::shared_ptr<Log> log);
    [[nodiscard]] static Result<std::shared_ptr<TraceFile>> open(const TraceFileConfig& config,
                                                                 std::shared_ptr<Log> log, bool append);

    void run();
    bool write_queued();
    void append(const TraceQueue& queue, const TraceQueue::Event& event);
    [[nodiscard]] const std::string& name_of(const wire::Address& peer);
    void write_events();
    void write_note(std::string_view what);
    std::uint64_t write_text();
    void fail(int code);
    void cut(std::size_t bytes) const;
    [[nodiscard]] std::uint64_t dropped();

    TraceFileConfig config_;
    net::Descriptor file_;
    std::shared_ptr<Log> log_;
    std::mutex mutex_;  // guards queues_ and stopping_
    std::condition_variable stop_;
    std::vector<std::unique_ptr<TraceQueue>> queues_;
    bool stopping_ = false;
    std::optional<Error> failure_;  // on the thread: a write failed, and text is thrown away
    std::string text_;              // on the thread: lines to write
    std::uint64_t in_text_ = 0;     // on the thread: events in text_
    std::uint64_t written_ = 0;
    std::uint64_t lost_ = 0;           // events that the file did not take
    std::vector<std::byte> datagram_;  // of the event that is described
    std::string where_;                // of that event
    std::unordered_map<wire::Address, std::string> names_;
    std::thread thread_;
};

}  // namespace atp::observe
