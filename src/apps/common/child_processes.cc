// SPDX-License-Identifier: Apache-2.0
#include "apps/common/child_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <thread>

#include "apps/common/command.h"
#include "net/clock.h"
#include "net/descriptor.h"

namespace atp::apps {
namespace {

constexpr Duration wait_interval = std::chrono::milliseconds(50);
// In which a signal reaches this process that its children have received already.
constexpr Duration longest_delivery = std::chrono::milliseconds(200);
constexpr Duration longest_removal = std::chrono::seconds(20);  // by a program that SIGTERM ends
constexpr int exit_not_started = 127;
constexpr int exit_lacking = 77;  // status of programs for which this host lacks something

struct Process {
    pid_t id = -1;
    bool running = false;
    int status = 0;
};

// Runs in a child that has only this thread, so only system calls are allowed.
[[noreturn]] void become(char** arguments, int output, pid_t parent, int end_signal) {
    // If the leader is killed, its ranks have no peer to sum with and no process that ends them.
    prctl(PR_SET_PDEATHSIG, end_signal);
    if (getppid() != parent) _exit(exit_failed);
    // The parent blocks SIGINT for itself; the child must receive it.
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(output >= 0 ? output : open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
    execv(arguments[0], arguments);
    _exit(exit_not_started);
}

class Fleet {
  public:
    // `end_signal`: SIGKILL, or SIGTERM for programs that then end by themselves.
    explicit Fleet(int end_signal) : end_signal_(end_signal) {}
    ~Fleet() { end(); }
    Fleet(const Fleet&) = delete;
    Fleet& operator=(const Fleet&) = delete;

    Result<void> start(const std::vector<std::string>& command, int output) {
        std::vector<char*> arguments;
        arguments.reserve(command.size() + 1);
        for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
        arguments.push_back(nullptr);
        const pid_t parent = getpid();
        const pid_t child = fork();
        if (child < 0) return fail_with_errno(Operation::open, errno, command.front());
        if (child == 0) become(arguments.data(), output, parent, end_signal_);
        processes_.push_back({.id = child, .running = true});
        return {};
    }

    // False while some processes run and none has failed.
    bool settled() {
        bool running = false;
        for (Process& process : processes_) {
            if (process.running && waitpid(process.id, &process.status, WNOHANG) == process.id) {
                process.running = false;
            }
            running = running || process.running;
        }
        return !running || failed() != nullptr;
    }
    [[nodiscard]] const Process* failed() const {
        for (const Process& process : processes_) {
            if (!process.running && process.status != 0) return &process;
        }
        return nullptr;
    }
    [[nodiscard]] std::size_t number_of(const Process& process) const {
        return static_cast<std::size_t>(&process - processes_.data());
    }
    void end() {
        if (end_signal_ != SIGKILL) wait_for_orderly_end();
        for (Process& process : processes_) {
            if (process.running) kill(process.id, SIGKILL);
        }
        for (Process& process : processes_) {
            if (process.running) waitpid(process.id, &process.status, 0);
            process.running = false;
        }
    }

  private:
    void wait_for_orderly_end() {
        for (const Process& process : processes_) {
            if (process.running) kill(process.id, end_signal_);
        }
        const Time deadline = net::now() + longest_removal;
        const auto runs = [](const Process& process) { return process.running; };
        while (std::ranges::any_of(processes_, runs) && net::now() < deadline) {
            std::this_thread::sleep_for(wait_interval);
            static_cast<void>(settled());
        }
    }

    int end_signal_;
    std::vector<Process> processes_;
};

void read_what_is_there(int descriptor, std::string& text) {
    std::array<char, 4096> part;
    for (ssize_t count = 1; count > 0;) {
        count = read(descriptor, part.data(), part.size());
        if (count > 0) text.append(part.data(), static_cast<std::size_t>(count));
    }
}

std::string describe(const Process& process, const std::string& program) {
    if (WIFSIGNALED(process.status)) {
        return fmt::format("{} was ended by signal {}", program, WTERMSIG(process.status));
    }
    if (WEXITSTATUS(process.status) == exit_not_started)
        return fmt::format("{} cannot be started: check that the file exists and is executable", program);
    return fmt::format("{} exited with status {}", program, WEXITSTATUS(process.status));
}

Result<std::string> run(Fleet& fleet, const std::vector<std::vector<std::string>>& commands,
                        const Interruption& interruption, Time deadline) {
    std::array<int, 2> pipe{};
    if (pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) return fail_with_errno(Operation::open, errno, "pipe");
    const net::Descriptor reader(pipe[0]);
    net::Descriptor writer(pipe[1]);
    // Make the writing end blocking, as programs expect of standard output.
    fcntl(writer.number(), F_SETFL, 0);
    for (std::size_t i = 0; i < commands.size(); ++i) {
        if (auto started = fleet.start(commands[i], i == 0 ? writer.number() : -1); !started) {
            return tl::unexpected(started.error());
        }
    }
    writer = net::Descriptor();
    const Failure stopped = fail(Operation::wait, Reason::closed, "benchmark", "stopped by a signal");
    const Time begin = net::now();
    std::string text;
    while (!fleet.settled()) {
        if (interruption.came()) return stopped;
        if (net::now() > deadline) {
            return tl::unexpected(
                Error{.operation = Operation::wait,
                      .reason = Reason::timed_out,
                      .peer = "benchmark",
                      .elapsed = net::now() - begin,
                      .text = fmt::format("{} did not exit before the deadline", commands.front().front())});
        }
        pollfd waiting{.fd = reader.number(), .events = POLLIN, .revents = 0};
        ::poll(&waiting, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait_interval).count()));
        if ((waiting.revents & POLLHUP) != 0 && (waiting.revents & POLLIN) == 0) usleep(20'000);
        read_what_is_there(reader.number(), text);
    }
    read_what_is_there(reader.number(), text);
    if (const Process* failed = fleet.failed()) {
        // A terminal also sends the signal to the ranks, which may end first.
        if (interruption.wait_for(longest_delivery)) return stopped;
        const bool lacks = WIFEXITED(failed->status) && WEXITSTATUS(failed->status) == exit_lacking;
        return fail(Operation::wait, lacks ? Reason::unsupported : Reason::failed,
                    fmt::format("rank {}", fleet.number_of(*failed)), describe(*failed, commands.front().front()));
    }
    return text;
}

}  // namespace

Result<std::string> run_fleet(const std::vector<std::vector<std::string>>& commands, const Interruption& interruption,
                              Time deadline) {
    Fleet fleet(SIGKILL);
    auto printed = run(fleet, commands, interruption, deadline);
    if (!printed && printed.error().reason == Reason::timed_out) {
        printed.error().text =
            "a rank did not exit before the deadline: raise --timeout, or check the path with `atp doctor`";
    }
    return printed;
}

Result<std::string> run_orderly(const std::vector<std::string>& command, const Interruption& interruption,
                                Time deadline) {
    Fleet fleet(SIGTERM);
    return run(fleet, {command}, interruption, deadline);
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string program_beside(const std::string& name) {
    return (std::filesystem::path(own_program()).parent_path() / name).string();
}

}  // namespace atp::apps
