// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <thread>
#include <vector>

namespace atp::test {

// The program `atp` as a process of its own, at the head of a group of processes as a shell starts it.
//
// Owns: the process, which is killed where the test ends before it, and a thread that collects what it prints.
class Program {
  public:
    explicit Program(const std::vector<std::string>& arguments, std::string program = ATP_PROGRAM);
    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    void signal(int number) const;
    // True once it has made sure that the signal does not end it without its doing.
    [[nodiscard]] bool awaits(int number) const;
    // As ctrl-C of a terminal reaches it: with all that it has started.
    void signal_group(int number) const;
    // Waits for its end. Its exit status; 128 and the number of a signal that ended it, as shells say it.
    [[nodiscard]] int status();
    // What it has printed, errors too; after status().
    [[nodiscard]] const std::string& output() const { return output_; }

  private:
    pid_t id_ = -1;
    int status_ = -1;
    std::string output_;
    std::thread reader_;
};

}  // namespace atp::test
