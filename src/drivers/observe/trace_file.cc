// SPDX-License-Identifier: Apache-2.0
#include "observe/trace_file.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <exception>
#include <map>
#include <utility>

#include "net/clock.h"

namespace atp::observe {
namespace {

constexpr std::size_t text_bytes = 1 << 18;
constexpr unsigned events_per_pass = 1 << 14;  // of one queue, before the next queue
constexpr unsigned last_passes = 1 << 12;      // bounds the end if a sender goes on
constexpr std::size_t longest_datagram_bytes = 1 << 16;
constexpr auto longest_pause = std::chrono::milliseconds(20);
constexpr int lowest_priority = 19;       // of nice: packets come first where cores are few
constexpr std::size_t most_names = 4096;  // of peers: forged senders have any number of addresses

std::string host_name() {
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

Failure cannot_write(const std::string& path, int code) {
    return fail_with_errno(Operation::open, code, path, "the trace cannot be written");
}

// A device has no lines to mix, and any number of processes may write to it. A reader of a pipe could stop them.
Result<void> check_kind(const std::string& path, mode_t mode) {
    if (S_ISREG(mode) || S_ISCHR(mode)) return {};
    // errors.md, calls, malformed: the path names a folder or a pipe
    return atp::fail(Operation::open, Reason::malformed, path, "this is no file: a trace needs one");
}

// The thread takes no signals, and gives way to threads that have packets.
void become_background() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), lowest_priority));
}

std::string wall_time() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

}  // namespace

std::string trace_path(std::string_view pattern, std::uint32_t rank) {
    std::string path;
    for (std::size_t at = 0; at < pattern.size(); ++at) {
        const char next = pattern[at] == '%' && at + 1 < pattern.size() ? pattern[at + 1] : '\0';
        switch (next) {
            case 'r': path += std::to_string(rank); break;
            case 'p': path += std::to_string(getpid()); break;
            case 'h': path += host_name(); break;
            case '%': path += '%'; break;
            default: path += pattern[at]; continue;
        }
        ++at;
    }
    return path;
}

Result<std::shared_ptr<TraceFile>> TraceFile::open(const TraceFileConfig& config, std::shared_ptr<Log> log) {
    return open(config, std::move(log), false);
}

Result<std::shared_ptr<TraceFile>> TraceFile::open(const TraceFileConfig& config, std::shared_ptr<Log> log,
                                                   bool append) {
    // A trace has tokens. A link that another user left in a folder that all may write must not lead it elsewhere.
    constexpr mode_t only_owner = S_IRUSR | S_IWUSR;
    // O_NONBLOCK: a pipe without a reader would wait for ever.
    constexpr int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    net::Descriptor file(::open(config.path.c_str(), flags, only_owner));
    if (file.number() < 0) return cannot_write(config.path, errno);
    struct stat state {};
    if (fstat(file.number(), &state) != 0) return cannot_write(config.path, errno);
    const bool is_file = S_ISREG(state.st_mode);
    if (auto good = check_kind(config.path, state.st_mode); !good) return tl::unexpected(good.error());
    fcntl(file.number(), F_SETFL, O_APPEND);  // without O_NONBLOCK
    if (is_file && flock(file.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        // errors.md, calls, in use: [traces](traces.md#record-and-read) explains %r and %p
        return atp::fail(Operation::open, Reason::in_use, config.path,
                         "another process writes this trace: give each process its own file, as with %r or %p");
    }
    // The file may have been there, and belong to another user.
    if (is_file && fchmod(file.number(), only_owner) != 0) return cannot_write(config.path, errno);
    if (is_file && !append && ftruncate(file.number(), 0) != 0) return cannot_write(config.path, errno);
    return std::shared_ptr<TraceFile>(new TraceFile(config, std::move(file), std::move(log)));
}

Result<void> TraceFile::check(const std::string& path) {
    struct stat state {};
    return lstat(path.c_str(), &state) == 0 ? check_kind(path, state.st_mode) : Result<void>();
}

Result<std::shared_ptr<TraceFile>> TraceFile::shared(const TraceFileConfig& config, std::shared_ptr<Log> log) {
    static std::mutex mutex;
    static std::map<std::string, std::weak_ptr<TraceFile>> files;  // also those that are closed: they are continued
    const std::scoped_lock lock(mutex);
    const auto known = files.find(config.path);
    if (known != files.end()) {
        if (auto file = known->second.lock()) return file;
    }
    auto file = open(config, std::move(log), known != files.end());
    if (file) files[config.path] = *file;
    return file;
}

TraceFile::TraceFile(const TraceFileConfig& config, net::Descriptor file, std::shared_ptr<Log> log)
    : config_(config), file_(std::move(file)), log_(std::move(log)), datagram_(longest_datagram_bytes) {
    text_.reserve(2 * text_bytes);
    write_note("begins at " + wall_time());
    thread_ = std::thread([this] {
        if (config_.enter_thread) config_.enter_thread();
        run();
    });
}

// Without memory, the last line and the line in the log are lost.
TraceFile::~TraceFile() {
    try {
        close();
    } catch (const std::exception&) {
        return;
    }
}

wire::TraceSink& TraceFile::add_queue(std::string local) {
    auto queue = std::make_unique<TraceQueue>(std::move(local), config_.queue_bytes);
    const std::scoped_lock lock(mutex_);
    queues_.push_back(std::move(queue));
    return *queues_.back();
}

TraceFile::Totals TraceFile::close() {
    if (thread_.joinable()) {
        {
            const std::scoped_lock lock(mutex_);
            stopping_ = true;
        }
        stop_.notify_all();
        thread_.join();
        const Totals totals{.written = written_, .dropped = dropped(), .failure = {}};
        write_note(fmt::format("ends at {} written={} dropped={}", wall_time(), totals.written, totals.dropped));
        file_ = net::Descriptor();
        if (log_ != nullptr) {
            log_->write(LogEvent::trace_ended,
                        {{"file", config_.path}, {"written", totals.written}, {"dropped", totals.dropped}});
        }
    }
    return {.written = written_, .dropped = dropped(), .failure = failure_};
}

// ----------------------------------------------------------------------------------------------------- On its thread

void TraceFile::run() {
    become_background();
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        lock.unlock();
        const bool found = write_queued();
        lock.lock();
        if (!found && !stopping_) stop_.wait_for(lock, longest_pause);
    }
    lock.unlock();
    for (unsigned pass = 0; pass < last_passes && write_queued(); ++pass) {
    }
}

// The events of one queue are in order. Readers sort the file.
bool TraceFile::write_queued() {
    bool found = false;
    for (std::size_t i = 0;; ++i) {
        TraceQueue* queue = nullptr;
        {
            const std::scoped_lock lock(mutex_);
            if (i < queues_.size()) queue = queues_[i].get();
        }
        if (queue == nullptr) break;
        TraceQueue::Event event;
        for (unsigned left = events_per_pass; left != 0 && queue->take(event); --left) {
            found = true;
            append(*queue, event);
            if (text_.size() >= text_bytes) write_events();
        }
    }
    write_events();
    return found;
}

void TraceFile::append(const TraceQueue& queue, const TraceQueue::Event& event) {
    if (failure_) {
        ++lost_;
        return;
    }
    // The lanes are not copied: describe_datagram() prints their number only.
    std::ranges::copy(event.copied, datagram_.begin());
    const std::string packet = wire::describe_datagram(std::span(datagram_).first(event.datagram_bytes));
    where_ = queue.local();
    if (event.peer.family() != wire::Family::none) {
        const std::string& peer = name_of(event.peer);
        event.arrived ? where_.insert(0, 1, '>').insert(0, peer) : where_.append(1, '>').append(peer);
    }
    wire::append_trace_line(text_, event.time, where_, event.what, packet);
    ++in_text_;
}

const std::string& TraceFile::name_of(const wire::Address& peer) {
    if (const auto known = names_.find(peer); known != names_.end()) return known->second;
    if (names_.size() == most_names) names_.clear();
    return names_[peer] = to_string(peer);
}

void TraceFile::write_events() {
    const std::uint64_t lines = write_text();
    written_ += lines;
    lost_ += in_text_ - lines;
    in_text_ = 0;
}

void TraceFile::write_note(std::string_view what) {
    wire::append_trace_line(text_, net::now(), fmt::format("process-{}", getpid()), what);
    write_text();
}

// Number of lines that the file has taken.
std::uint64_t TraceFile::write_text() {
    std::size_t taken = 0;
    while (taken < text_.size() && !failure_) {
        const ssize_t count = ::write(file_.number(), text_.data() + taken, text_.size() - taken);
        if (count > 0) {
            taken += static_cast<std::size_t>(count);
        } else if (count == 0 || errno != EINTR) {
            fail(count == 0 ? EIO : errno);
        }
    }
    const std::string_view written = std::string_view(text_).substr(0, taken);
    const std::size_t complete = written.rfind('\n') + 1;  // 0 without a line end
    cut(taken - complete);
    const auto lines = static_cast<std::uint64_t>(std::ranges::count(written, '\n'));
    text_.clear();
    return lines;
}

// Removes the beginning of a line that a full disk did not take as a whole.
void TraceFile::cut(std::size_t bytes) const {
    struct stat state {};
    if (bytes == 0 || fstat(file_.number(), &state) != 0 || !S_ISREG(state.st_mode)) return;
    // Where it fails, that beginning stays, and there is nothing else to try. (A cast to void does not silence gcc
    // here.)
    [[maybe_unused]] const int status = ftruncate(file_.number(), state.st_size - static_cast<off_t>(bytes));
}

void TraceFile::fail(int code) {
    const char* const why = std::strerror(code);
    failure_ = cannot_write(config_.path, code).value();
    if (log_ != nullptr) {
        log_->write(LogEvent::trace_failed, {{"file", config_.path}, {"reason", why}});
    } else {
        fmt::print(stderr, "atp: trace failed file={} reason=\"{}\"\n", config_.path, why);
    }
}

std::uint64_t TraceFile::dropped() {
    std::uint64_t all = lost_;
    const std::scoped_lock lock(mutex_);
    for (const auto& queue : queues_) all += queue->dropped();
    return all;
}

}  // namespace atp::observe
