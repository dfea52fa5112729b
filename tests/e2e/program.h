// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace atp::test {

// The program `atp` as a process of its own, the leader of a process group as a shell starts it.
//
// Ownership: owns the process, which the destructor kills if it still runs, and a thread that collects its output.
class Program {
  public:
    explicit Program(const std::vector<std::string>& arguments, std::string program = ATP_PROGRAM);
    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    void signal(int number) const;
    // True once the process blocks the signal, so that the signal cannot end it before the process handles it.
    [[nodiscard]] bool awaits(int number) const;
    // True once the process has mapped memory of this name.
    [[nodiscard]] bool maps(std::string_view name) const;
    // Sends the signal to the process and its children, as Ctrl-C in a terminal does.
    void signal_group(int number) const;
    // Waits for the end. Returns the exit status, or 128 plus the number of the signal that ended the process.
    [[nodiscard]] int status();
    // Standard output and standard error; call it after status().
    [[nodiscard]] const std::string& output() const { return output_; }

  private:
    pid_t id_ = -1;
    int status_ = -1;
    std::string output_;
    std::thread reader_;
};

// A free port for rank 0. It is below the kernel's ephemeral ports, and tests that run at the same time get different
// ports.
[[nodiscard]] std::string free_port();

}  // namespace atp::test
