// SPDX-License-Identifier: Apache-2.0
#include "apps/common/confinement.h"

#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace atp::apps {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t architecture = 0;  // not known: no filter
#endif

// Packets and requests: sockets that are open, and those of the exporter and of `atp drain`.
constexpr std::array network_calls{
    __NR_accept4,      __NR_bind,       __NR_connect,  __NR_getpeername, __NR_getsockname, __NR_getsockopt,
    __NR_listen,       __NR_recvfrom,   __NR_recvmmsg, __NR_recvmsg,     __NR_sendmmsg,    __NR_sendmsg,
    __NR_sendto,       __NR_setsockopt, __NR_shutdown, __NR_epoll_ctl,   __NR_epoll_pwait, __NR_epoll_create1,
    __NR_epoll_pwait2, __NR_eventfd2,   __NR_ppoll,    __NR_pipe2,       __NR_ioctl,
#ifdef __NR_epoll_wait
    __NR_epoll_wait,   __NR_poll,
#endif
};

// Files that SIGHUP reads again, the trace, and what a switch removes at its end (libbpf first asks for the file
// system).
constexpr std::array file_calls{
    __NR_close,      __NR_dup,       __NR_dup3,   __NR_fcntl,     __NR_fstat,  __NR_getdents64, __NR_lseek,
    __NR_openat,     __NR_pread64,   __NR_read,   __NR_readv,     __NR_statx,  __NR_unlinkat,   __NR_write,
    __NR_writev,     __NR_pwrite64,  __NR_fsync,  __NR_ftruncate, __NR_fchmod, __NR_flock,      __NR_readlinkat,
    __NR_newfstatat, __NR_faccessat, __NR_statfs,
#ifdef __NR_open
    __NR_open,       __NR_stat,      __NR_lstat,  __NR_unlink,    __NR_access, __NR_readlink,   __NR_rmdir,
#endif
};

// What an open map or program is used for, and what its removal needs. No program is loaded.
constexpr std::array bpf_commands{
    BPF_MAP_LOOKUP_ELEM,   BPF_MAP_UPDATE_ELEM,  BPF_MAP_DELETE_ELEM,
    BPF_MAP_GET_NEXT_KEY,  BPF_MAP_LOOKUP_BATCH, BPF_MAP_LOOKUP_AND_DELETE_ELEM,
    BPF_PROG_GET_FD_BY_ID, BPF_MAP_GET_FD_BY_ID, BPF_OBJ_GET_INFO_BY_FD,
};

// Threads, memory, time and signals.
constexpr std::array process_calls{
    __NR_brk,
    __NR_capget,
    __NR_capset,
    __NR_clock_getres,
    __NR_clock_gettime,
    __NR_clock_nanosleep,
    __NR_exit,
    __NR_exit_group,
    __NR_futex,
    __NR_getegid,
    __NR_geteuid,
    __NR_getgid,
    __NR_getpid,
    __NR_getrandom,
    __NR_getrusage,
    __NR_gettid,
    __NR_gettimeofday,
    __NR_getuid,
    __NR_madvise,
    __NR_membarrier,
    __NR_mremap,
    __NR_munmap,
    __NR_nanosleep,
    __NR_prctl,
    __NR_prlimit64,
    __NR_restart_syscall,
    __NR_rseq,
    __NR_rt_sigaction,
    __NR_rt_sigprocmask,
    __NR_rt_sigreturn,
    __NR_rt_sigtimedwait,
    __NR_sched_getaffinity,
    __NR_sched_setaffinity,
    __NR_sched_yield,
    __NR_set_robust_list,
    __NR_setpriority,
    __NR_sigaltstack,
    __NR_sysinfo,
    __NR_tgkill,
    __NR_uname,
};

constexpr std::array socket_families{AF_INET, AF_INET6, AF_UNIX, AF_NETLINK};

// A program of the kernel's filter machine, which sees one system call at a time.
class Filter {
  public:
    explicit Filter(std::uint32_t otherwise) : otherwise_(otherwise) {}

    [[nodiscard]] std::vector<sock_filter> take() {
        answer(otherwise_);
        return std::move(code_);
    }

    // Other architectures number the calls differently.
    void begin() {
        load(offsetof(seccomp_data, arch));
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0));
        answer(SECCOMP_RET_KILL_PROCESS);
        load(offsetof(seccomp_data, nr));
    }
    template <class Calls>
    void allow(const Calls& calls) {
        for (const int call : calls) {
            code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1));
            answer(SECCOMP_RET_ALLOW);
        }
    }
    void answer_to(int call, std::uint32_t value) {
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1));
        answer(value);
    }
    // Allows a call whose argument has all of these bits, or with `unset` none of them.
    void allow_bits(int call, std::size_t argument, std::uint32_t bits, bool unset) {
        // Of the filter machine: jump over the next instructions, if true or if false.
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 5));
        load_argument(argument);
        code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unset ? 0 : bits, 0, 1));
        answer(SECCOMP_RET_ALLOW);
        answer(otherwise_);
    }
    template <class Values>
    void allow_values(int call, std::size_t argument, const Values& values) {
        const auto past = static_cast<std::uint8_t>(2 + 2 * std::size(values));
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, past));
        load_argument(argument);
        for (const int value : values) {
            code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(value), 0, 1));
            answer(SECCOMP_RET_ALLOW);
        }
        answer(otherwise_);
    }

  private:
    void load(std::size_t offset) {
        code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
    }
    // The lower half, on machines that store it first.
    void load_argument(std::size_t argument) { load(offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t)); }
    void answer(std::uint32_t value) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, value)); }

    std::vector<sock_filter> code_;
    std::uint32_t otherwise_;
};

std::vector<sock_filter> filter_of(Confinement confinement) {
    Filter filter(confinement == Confinement::kill ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM);
    filter.begin();
    filter.allow(network_calls);
    filter.allow(process_calls);
    filter.allow(file_calls);
    filter.allow_values(__NR_socket, 0, socket_families);
    filter.allow_values(__NR_bpf, 0, bpf_commands);
    // Threads, but no processes. The filter cannot look into the arguments of clone3, without which the C library does.
    filter.allow_bits(__NR_clone, 0, CLONE_THREAD, false);
    filter.answer_to(__NR_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    filter.allow_bits(__NR_mmap, 2, PROT_EXEC, true);
    filter.allow_bits(__NR_mprotect, 2, PROT_EXEC, true);
    return filter.take();
}

using CapabilitySets = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

constexpr __user_cap_header_struct this_thread{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};

CapabilitySets capabilities() {
    CapabilitySets sets{};
    __user_cap_header_struct header = this_thread;
    syscall(SYS_capget, &header, sets.data());
    return sets;
}

void set_capabilities(const CapabilitySets& sets) {
    __user_cap_header_struct header = this_thread;
    syscall(SYS_capset, &header, sets.data());
}

// Those of `sets` that `kept` names.
CapabilitySets only(CapabilitySets sets, std::initializer_list<unsigned> kept) {
    constexpr unsigned word_bits = 32;
    CapabilitySets named{};
    for (const unsigned capability : kept) named[capability / word_bits].effective |= 1U << capability % word_bits;
    for (std::size_t i = 0; i < sets.size(); ++i) {
        sets[i].permitted &= named[i].effective;
        sets[i].effective &= named[i].effective;
        sets[i].inheritable = 0;
    }
    return sets;
}

// Where maps may not be used, the kernel says so before it looks at the descriptor.
bool may_use_maps() {
    bpf_attr call{};
    call.info.bpf_fd = static_cast<std::uint32_t>(-1);
    return syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &call, sizeof call) == 0 || errno != EPERM;
}

}  // namespace

std::optional<Confinement> confinement_of(std::string_view word) {
    if (word == "refuse") return Confinement::refuse;
    if (word == "kill") return Confinement::kill;
    if (word == "off") return Confinement::off;
    return std::nullopt;
}

void keep_capabilities(std::initializer_list<unsigned> kept) { set_capabilities(only(capabilities(), kept)); }

void keep_use_of_maps() {
    const CapabilitySets with_maps = only(capabilities(), {CAP_BPF});
    CapabilitySets tried = with_maps;
    for (auto& part : tried) part.effective = 0;
    set_capabilities(tried);
    set_capabilities(may_use_maps() ? CapabilitySets{} : with_maps);
}

Result<void> confine_system_calls(Confinement confinement) {
    // Sanitizers make calls of their own, so their builds have no filter, not even with `kill`.
    if (confinement == Confinement::off || usual_confinement == Confinement::off || architecture == 0) return {};
    std::vector<sock_filter> code = filter_of(confinement);
    const sock_fprog program{.len = static_cast<unsigned short>(code.size()), .filter = code.data()};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const auto answer = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    if (answer == 0) return {};
    // Above 0: the number of a thread that has another filter.
    return fail_with_errno(Operation::open, answer > 0 ? EBUSY : errno, "seccomp filter");
}

}  // namespace atp::apps
