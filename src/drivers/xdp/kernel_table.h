// SPDX-License-Identifier: Apache-2.0
// The switch inside the kernel: loads switch.bpf.c, and reads and writes its maps.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "control/data_plane.h"
#include "protocol/switch.h"
#include "xdp/layout.h"

namespace atp::xdp {

struct KernelSwitchConfig {
    std::uint32_t aggregators = 4096;  // entries of the table, shared by all jobs
    std::uint32_t jobs = 64;           // how many can be admitted at once
    std::uint16_t port = 4790;         // of UDP, of either end: what is sent to and from others is not looked at
    Duration ageing = std::chrono::milliseconds(500);
    bool clock_stands = false;  // for tests: the time is what set_now_us() says
    // A folder of a bpffs where the table, the jobs and the counters are kept: who loads again with the same folder
    // goes on with them. Empty: they end with this process.
    std::string pins = {};
};

struct KernelCounters {
    protocol::SwitchCounters packets;
    std::uint64_t oversized = 0;  // passed: more lanes than an aggregator has
    std::uint64_t damaged = 0;    // passed: the checksum does not hold
};

// What the program did with a frame.
enum class Fate : std::uint8_t { dropped, passed, sent_back, failed };

struct Outcome {
    Fate fate = Fate::failed;
    std::vector<std::byte> frame;  // as the program left it
    std::uint32_t duration_ns = 0;
};

// Owns the programs and their maps; all end with it, unless they are pinned or attached somewhere.
//
// Calling order: load(); admit() jobs; the program then aggregates wherever it is attached. unpin() before a last end.
// Threads: one at a time; the kernel's side runs on every processor meanwhile.
// Failure: load() says what this kernel lacks or forbids, in the verifier's words where it has some.
class KernelSwitch {
  public:
    [[nodiscard]] static Result<std::unique_ptr<KernelSwitch>> load(const KernelSwitchConfig& config);
    ~KernelSwitch();
    KernelSwitch(const KernelSwitch&) = delete;
    KernelSwitch& operator=(const KernelSwitch&) = delete;

    // As protocol::Switch::admit().
    [[nodiscard]] bool admit(std::uint32_t job, std::uint32_t token, std::uint8_t level);
    void dismiss(std::uint32_t job);
    // Of a job that is admitted: packets of one of level ATP_LEVELS pass.
    void set_level(std::uint32_t job, std::uint8_t level);

    [[nodiscard]] std::vector<control::AdmittedJob> jobs() const;

    [[nodiscard]] KernelCounters counters() const;
    // Nothing for a job that is not admitted.
    [[nodiscard]] std::optional<KernelCounters> job_counters(std::uint32_t job) const;
    [[nodiscard]] std::uint32_t occupied() const;  // walks the table

    // One aggregator, out of the kernel and into it. False for an index that the table does not have.
    [[nodiscard]] bool read(std::uint32_t index, atp_xdp_aggregator& aggregator) const;
    [[nodiscard]] bool write(std::uint32_t index, const atp_xdp_aggregator& aggregator);
    void set_now_us(std::uint32_t now_us);

    // Waits for control messages that passed, at most so long, and gives them to `visit`, whole.
    using Visit = std::function<void(std::span<const std::byte> message)>;
    void read_letters(std::chrono::milliseconds at_most, const Visit& visit);

    // Of the programs, for whoever attaches them: to what arrives, and to what leaves.
    [[nodiscard]] int descriptor() const;
    [[nodiscard]] int egress_descriptor() const;
    // True for one that goes on with the maps of an earlier start.
    [[nodiscard]] bool took_over() const { return took_over_; }
    // Takes the maps out of their folder: the next load() begins anew.
    void unpin();

    // Has the kernel run the program on one Ethernet frame, here and now, `repeat` times without resetting it. It runs
    // on a copy: nothing is received or sent.
    [[nodiscard]] Result<Outcome> run(std::span<const std::byte> frame, std::uint32_t repeat = 1) const;
    // And that of what leaves: on a frame that is yet to be parted into datagrams of so many bytes, 0 for not at all.
    [[nodiscard]] Result<Outcome> run_egress(std::span<const std::byte> frame, std::uint32_t segment_bytes = 0) const;

  private:
    struct Skeleton;
    explicit KernelSwitch(const KernelSwitchConfig& config);
    [[nodiscard]] Result<void> pin();
    void recover_slots();
    [[nodiscard]] KernelCounters counters_in(std::uint32_t slot) const;
    void clear_counters(std::uint32_t slot);

    KernelSwitchConfig config_;
    std::unique_ptr<Skeleton> skeleton_;
    bool took_over_ = false;
    std::vector<std::uint32_t> free_slots_;  // of counters, for jobs
};

// The lane's number in its aggregator.
[[nodiscard]] std::int32_t lane_of(const atp_xdp_aggregator& aggregator, std::size_t lane);
void set_lane(atp_xdp_aggregator& aggregator, std::size_t lane, std::int32_t value);

}  // namespace atp::xdp
