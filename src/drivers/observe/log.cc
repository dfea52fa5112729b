// SPDX-License-Identifier: Apache-2.0
#include "observe/log.h"

#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/pattern_formatter.h>

#include <cassert>
#include <csignal>
#include <exception>
#include <optional>
#include <vector>

#include "base/older_symbols.h"  // spdlog waits
#include "net/clock.h"
#include "observe/stderr_sink.h"

namespace atp::observe {
namespace {

// Times are in UTC, so that lines of all hosts compare.
constexpr const char* text_pattern = "%Y-%m-%dT%H:%M:%S.%eZ %v";
constexpr Duration longest_end = std::chrono::seconds(1);  // of writing what is queued, if standard error is blocked
constexpr const char* json_pattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v})";

void block_signals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

struct Log::Queue {
    explicit Queue(const LogConfig& config)
        : threads(std::make_shared<spdlog::details::thread_pool>(config.queued_lines, 1,
                                                                 [enter = config.enter_thread] {
                                                                     block_signals();
                                                                     if (enter) enter();
                                                                 })),
          logger(std::make_shared<spdlog::async_logger>("atp", sink, threads,
                                                        spdlog::async_overflow_policy::overrun_oldest)) {
        const char* const pattern = config.format == LogFormat::json ? json_pattern : text_pattern;
        logger->set_formatter(
            std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc, "\n"));
        logger->set_level(spdlog::level::trace);  // Log decides by its table
    }

    std::shared_ptr<StderrSink> sink = std::make_shared<StderrSink>();
    std::shared_ptr<spdlog::details::thread_pool> threads;  // outlives the logger, which only observes it
    std::shared_ptr<spdlog::async_logger> logger;
};

Log::Log(const LogConfig& config) : config_(config), level_(config.level), limit_(event_table().size(), config.limit) {
    if (!config_.receiver && config_.level != Severity::off) queue_ = std::make_unique<Queue>(config_);
}

// Without memory, the last lines are lost.
Log::~Log() {
    try {
        finish();
    } catch (const std::exception&) {
        return;
    }
}

void Log::finish() {
    report_suppressed(never);
    if (queue_ == nullptr) return;
    const std::size_t lost = queue_->threads->overrun_counter();
    if (lost != 0) {
        emit(row_of(LogEvent::log_suppressed),
             std::vector<LogField>{{"event", "queue"}, {"count", static_cast<std::uint64_t>(lost)}});
    }
    queue_->sink->end_by(net::now() + longest_end);
}

void Log::write(LogEvent event, const std::vector<LogField>& fields, std::uint64_t source) {
    assert(has_defined_keys(row_of(event), fields));
    if (!writes(event)) return;
    const Time now = net::now();
    report_suppressed(now);
    {
        const std::scoped_lock lock(mutex_);
        if (!limit_.admit(static_cast<std::size_t>(event), now, source)) return;
    }
    emit(row_of(event), fields);
}

void Log::poll() { report_suppressed(net::now()); }

void Log::report_suppressed(Time now) {
    if (!writes(LogEvent::log_suppressed)) return;
    for (;;) {
        std::optional<RateLimit::Suppressed> suppressed;
        {
            const std::scoped_lock lock(mutex_);
            suppressed = limit_.poll_suppressed(now);
        }
        if (!suppressed) return;
        const EventRow& of = event_table()[suppressed->kind];
        emit(row_of(LogEvent::log_suppressed),
             std::vector<LogField>{{"event", of.words}, {"count", suppressed->count}});
    }
}

void Log::emit(const EventRow& row, std::span<const LogField> fields) {
    if (config_.receiver) {
        config_.receiver(row.severity, text_line(row, fields).substr(to_string(row.severity).size() + 1));
    } else if (queue_ != nullptr) {
        const std::string line = config_.format == LogFormat::json ? json_members(row, fields) : text_line(row, fields);
        queue_->logger->log(spdlog::level::info, spdlog::string_view_t(line));
    }
}

}  // namespace atp::observe
