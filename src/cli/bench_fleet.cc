// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_fleet.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "net/clock.h"
#include "net/descriptor.h"

extern char** environ;

namespace atp::cli {
namespace {

constexpr protocol::Duration look_interval = std::chrono::milliseconds(50);

struct Process {
    pid_t id = -1;
    bool running = false;
    int status = 0;
};

class Fleet {
  public:
    ~Fleet() { end(); }

    net::Result<void> start(const std::vector<std::string>& command, int output) {
        std::vector<char*> arguments;
        arguments.reserve(command.size() + 1);
        for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
        arguments.push_back(nullptr);
        posix_spawn_file_actions_t files;
        posix_spawn_file_actions_init(&files);
        if (output >= 0) {
            posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
        } else {
            posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        }
        // Not the mask of this process, which keeps ctrl-C for itself.
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        sigset_t none;
        sigemptyset(&none);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        Process process;
        const int code =
            posix_spawn(&process.id, command.front().c_str(), &files, &attributes, arguments.data(), environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&files);
        if (code != 0) return net::fail_with_errno(net::Operation::open, code, command.front());
        process.running = true;
        processes_.push_back(process);
        return {};
    }

    // False while some are running and none has failed.
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
        for (Process& process : processes_) {
            if (process.running) kill(process.id, SIGKILL);
        }
        for (Process& process : processes_) {
            if (process.running) waitpid(process.id, &process.status, 0);
            process.running = false;
        }
    }

  private:
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
    return fmt::format("{} exited with status {}", program, WEXITSTATUS(process.status));
}

}  // namespace

net::Result<std::string> run_fleet(const std::vector<std::vector<std::string>>& commands, const StopSignals& signals,
                                   protocol::Time deadline) {
    std::array<int, 2> pipe{};
    if (pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0)
        return net::fail_with_errno(net::Operation::open, errno, "pipe");
    const net::Descriptor reader(pipe[0]);
    net::Descriptor writer(pipe[1]);
    // The writing end blocks, as a process expects of its output.
    fcntl(writer.number(), F_SETFL, 0);
    Fleet fleet;
    for (std::size_t i = 0; i < commands.size(); ++i) {
        if (auto started = fleet.start(commands[i], i == 0 ? writer.number() : -1); !started) {
            return tl::unexpected(started.error());
        }
    }
    writer = net::Descriptor();
    std::string text;
    while (!fleet.settled()) {
        if (signals.wait_for(std::chrono::milliseconds(0))) {
            return net::fail(net::Operation::wait, net::Reason::closed, "benchmark", "told to stop");
        }
        if (net::now() > deadline) {
            return net::fail(net::Operation::wait, net::Reason::timed_out, "benchmark", "a rank does not end");
        }
        pollfd waiting{.fd = reader.number(), .events = POLLIN, .revents = 0};
        ::poll(&waiting, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(look_interval).count()));
        if ((waiting.revents & POLLHUP) != 0 && (waiting.revents & POLLIN) == 0) usleep(20'000);
        read_what_is_there(reader.number(), text);
    }
    read_what_is_there(reader.number(), text);
    if (const Process* failed = fleet.failed()) {
        return net::fail(net::Operation::wait, net::Reason::failed, fmt::format("rank {}", fleet.number_of(*failed)),
                         describe(*failed, commands.front().front()));
    }
    return text;
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string program_beside(const std::string& name) {
    return (std::filesystem::path(own_program()).parent_path() / name).string();
}

}  // namespace atp::cli
