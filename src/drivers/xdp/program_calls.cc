// SPDX-License-Identifier: Apache-2.0
#include "xdp/program_calls.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <cerrno>
#include <string>

namespace atp::xdp {
namespace {

constexpr std::size_t largest_frame_bytes = 4096;

// The verifier's last line before its statistics is the reason.
std::string last_words(std::string_view log) {
    log = log.substr(0, log.find('\0'));
    const std::size_t statistics = log.rfind("processed ");
    if (statistics != std::string_view::npos) log = log.substr(0, statistics);
    while (!log.empty() && log.back() == '\n') log.remove_suffix(1);
    return std::string(log.substr(log.find_last_of('\n') + 1));
}

std::string_view hint_of(int code) {
    switch (code) {
        // errors.md, starts, denied
        case EPERM: return "loading needs CAP_BPF and CAP_NET_ADMIN: run as root";
        // errors.md, starts, exhausted
        case ENOMEM: return "the kernel has no memory for so many aggregators: use less --memory";
        default: return {};
    }
}

}  // namespace

Failure load_failure(int code, std::string_view log) {
    const std::string words = last_words(log);
    if (!words.empty()) return fail_with_errno(Operation::open, code, "XDP program", "the verifier reports: " + words);
    return fail_with_errno(Operation::open, code, "XDP program", std::string(hint_of(code)));
}

Disposition filter_disposition_of(std::uint32_t verdict) {
    return verdict == static_cast<std::uint32_t>(TC_ACT_UNSPEC) ? Disposition::passed : Disposition::failed;
}

Disposition disposition_of(std::uint32_t verdict) {
    switch (verdict) {
        case XDP_DROP: return Disposition::dropped;
        case XDP_PASS: return Disposition::passed;
        case XDP_TX: return Disposition::sent_back;
        default: return Disposition::failed;
    }
}

Result<Outcome> run_program(int code, std::span<const std::byte> frame, bpf_test_run_opts& options) {
    Outcome outcome;
    outcome.frame.resize(largest_frame_bytes);
    options.sz = sizeof options;
    options.data_in = frame.data();
    options.data_size_in = static_cast<std::uint32_t>(frame.size());
    options.data_out = outcome.frame.data();
    options.data_size_out = static_cast<std::uint32_t>(outcome.frame.size());
    if (bpf_prog_test_run_opts(code, &options) != 0) {
        return fail_with_errno(Operation::send, errno, "XDP program");
    }
    outcome.frame.resize(options.data_size_out);
    outcome.duration_ns = options.duration;
    return outcome;
}

}  // namespace atp::xdp
