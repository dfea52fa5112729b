// SPDX-License-Identifier: Apache-2.0
#include "apps/common/confinement.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>

namespace atp::apps {
namespace {

// How a process ends that runs `body` after it is confined: the body's answer is its exit status.
int end_of_confined(Confinement confinement, const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) _exit(confine_system_calls(confinement) ? body() : 99);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

int status_of_confined(const std::function<int()>& body) {
    const int status = end_of_confined(Confinement::refuse, body);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The errno of a call that must fail; 0: it worked.
int error_of(long answer) { return answer == -1 ? errno : 0; }

TEST(Confinement, WordsNameEachMode) {
    EXPECT_EQ(confinement_of("refuse"), Confinement::refuse);
    EXPECT_EQ(confinement_of("kill"), Confinement::kill);
    EXPECT_EQ(confinement_of("off"), Confinement::off);
    EXPECT_EQ(confinement_of("on"), std::nullopt);
}

class Confined : public testing::Test {
  protected:
    void SetUp() override {
        if (usual_confinement == Confinement::off) GTEST_SKIP() << "the sanitizers make calls of their own";
    }
};

TEST_F(Confined, NoProgramAndNoProcessStarts) {
    EXPECT_EQ(status_of_confined([] { return error_of(execl("/bin/true", "true", nullptr)); }), EPERM);
    EXPECT_EQ(status_of_confined([] {
                  const pid_t child = fork();
                  if (child == 0) _exit(0);
                  return error_of(child);
              }),
              EPERM);
}

TEST_F(Confined, ThreadsStart) {
    EXPECT_EQ(status_of_confined([] {
                  int answer = 0;
                  std::thread([&] { answer = 7; }).join();
                  return answer;
              }),
              7);
}

TEST_F(Confined, NoMemoryBecomesExecutable) {
    EXPECT_EQ(status_of_confined([] {
                  const void* const made =
                      mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                  return made == MAP_FAILED ? errno : 0;
              }),
              EPERM);
    EXPECT_EQ(status_of_confined([] {
                  void* const made = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                  if (made == MAP_FAILED) return 98;
                  return error_of(mprotect(made, 4096, PROT_READ | PROT_EXEC));
              }),
              EPERM);
}

TEST_F(Confined, OnlySocketsOfANetworkOrAFileOpen) {
    for (const int family : {AF_INET, AF_INET6, AF_UNIX}) {
        EXPECT_EQ(status_of_confined([=] { return error_of(socket(family, SOCK_DGRAM, 0)); }), 0) << family;
    }
    EXPECT_EQ(status_of_confined([] { return error_of(socket(AF_PACKET, SOCK_RAW, 0)); }), EPERM);
    EXPECT_EQ(status_of_confined([] { return error_of(socket(AF_VSOCK, SOCK_STREAM, 0)); }), EPERM);
}

TEST_F(Confined, AllThreadsAreBound) {
    const int status = status_of_confined([] { return prctl(PR_GET_SECCOMP, 0, 0, 0, 0); });
    EXPECT_EQ(status, 2);
    const pid_t child = fork();
    if (child == 0) {
        std::atomic<bool> confined{false};
        int seen = 0;
        std::thread earlier([&] {
            while (!confined) std::this_thread::yield();
            seen = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
        });
        confined = confine_system_calls(Confinement::refuse).has_value();
        earlier.join();
        _exit(seen);
    }
    int ended = 0;
    waitpid(child, &ended, 0);
    EXPECT_EQ(WEXITSTATUS(ended), 2);
}

TEST_F(Confined, KillEndsTheProcessAtTheFirstOtherCall) {
    const int status = end_of_confined(Confinement::kill, [] { return static_cast<int>(syscall(SYS_personality, 0)); });
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGSYS);
}

TEST_F(Confined, OffChangesNothing) {
    const int status = end_of_confined(Confinement::off, [] { return prctl(PR_GET_SECCOMP, 0, 0, 0, 0); });
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Capabilities, OnlyTheKeptStay) {
    const auto has = [](int capability) {
        __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
        __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
        syscall(SYS_capget, &header, sets);
        return (sets[capability / 32].effective >> (capability % 32) & 1U) != 0;
    };
    if (!has(CAP_NET_ADMIN) || !has(CAP_CHOWN)) GTEST_SKIP() << "needs root";
    std::thread([&] {
        keep_capabilities({CAP_NET_ADMIN});
        EXPECT_TRUE(has(CAP_NET_ADMIN));
        EXPECT_FALSE(has(CAP_CHOWN));
        keep_capabilities({});
        EXPECT_FALSE(has(CAP_NET_ADMIN));
    }).join();
    EXPECT_TRUE(has(CAP_CHOWN)) << "of other threads";
}

}  // namespace
}  // namespace atp::apps
