// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string_view>

#include "net/clock.h"
#include "wire/address.h"

namespace atp::test {
namespace {

// Programs that should end take seconds at most.
constexpr Duration longest_run = std::chrono::seconds(40);

}  // namespace

Program::Program(const std::vector<std::string>& arguments, std::string program) {
    std::vector<std::string> texts = arguments;
    std::vector<char*> words{program.data()};
    for (std::string& text : texts) words.push_back(text.data());
    words.push_back(nullptr);
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    id_ = fork();
    if (id_ == 0) {
        setpgid(0, 0);
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        execv(words.front(), words.data());
        _exit(127);
    }
    EXPECT_GT(id_, 0);
    setpgid(id_, id_);  // both parent and child do this, since either may run first
    close(ends[1]);
    reader_ = std::thread([this, end = ends[0]] {
        std::array<char, 4096> part{};
        for (ssize_t count = 1; count > 0;) {
            count = read(end, part.data(), part.size());
            if (count > 0) output_ += std::string_view(part.data(), static_cast<std::size_t>(count));
        }
        close(end);
    });
}

Program::~Program() {
    if (status_ < 0) {
        signal_group(SIGKILL);
        static_cast<void>(status());
    }
}

void Program::signal(int number) const { EXPECT_EQ(kill(id_, number), 0); }

bool Program::awaits(int number) const {
    std::ifstream status("/proc/" + std::to_string(id_) + "/status");
    const std::string_view label = "SigBlk:";
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(label))
            return (std::stoull(line.substr(label.size()), nullptr, 16) >> (number - 1) & 1) != 0;
    }
    return false;
}

bool Program::maps(std::string_view name) const {
    std::ifstream maps("/proc/" + std::to_string(id_) + "/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find(name) != std::string::npos) return true;
    }
    return false;
}

void Program::signal_group(int number) const { EXPECT_EQ(kill(-id_, number), 0); }

int Program::status() {
    if (status_ >= 0) return status_;
    int raw = 0;
    const Time until = net::now() + longest_run;
    while (waitpid(id_, &raw, WNOHANG) == 0) {
        if (net::now() > until) {
            ADD_FAILURE() << "it does not end";
            signal_group(SIGKILL);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
    reader_.join();
    return status_;
}

std::string free_port() {
    constexpr unsigned first = 20'000, processes = 1'500, of_a_process = 8;
    static unsigned asked = 0;
    const unsigned port = first + static_cast<unsigned>(getpid()) % processes * of_a_process + asked++ % of_a_process;
    return to_string(wire::Address::loopback(wire::Family::ipv4, static_cast<std::uint16_t>(port)));
}

}  // namespace atp::test
