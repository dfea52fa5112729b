// SPDX-License-Identifier: Apache-2.0
// The kernel switch: loads switch.bpf.c, and reads and writes its maps.
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
#include "control/channel_key.h"
#include "control/data_plane.h"
#include "control/passing_questions.h"
#include "protocol/switch.h"
#include "xdp/layout.h"
#include "xdp/program_calls.h"

namespace atp::xdp {

struct KernelTableConfig {
    std::uint32_t aggregators = 4096;  // entries of the table, shared by all jobs
    std::uint32_t jobs = 64;           // admitted at the same time, at most
    std::uint16_t port = 4790;         // UDP port of either end; the program ignores packets of other ports
    Duration ageing = std::chrono::milliseconds(500);
    bool clock_is_fixed = false;  // for tests: set_now_us() sets the time
    // Folder of a bpffs that keeps the table, the jobs and the counters: the next load() with this folder continues
    // with them. Empty: they end with this process.
    std::string pins = {};
};

struct KernelCounters {
    protocol::SwitchCounters packets;
    std::uint64_t oversized = 0;  // passed: more lanes than an aggregator has
    std::uint64_t damaged = 0;    // passed: wrong checksum
    // Of a job, not of all together.
    std::uint64_t copied_bytes = 0;  // of frames, sent as copies
    std::uint64_t uncopied = 0;      // frames for all members that were not copied: the job had too little credit
};

// The programs of the kernel switch and their maps.
//
// Ownership: owns both; they end with this object, unless they are pinned or attached.
// Calling order: load(), then admit() jobs: the program aggregates on each interface to which it is attached. Call
//   unpin() if no later start shall continue with the maps.
// Threads: one at a time; the program runs on every processor meanwhile.
// Failure: load() reports what the kernel lacks or forbids, with the verifier's text if there is one.
class KernelTable {
  public:
    // May pass between the moments at which user space reads and writes a slice.
    static constexpr std::uint32_t windows_meanwhile = 3;

    [[nodiscard]] static Result<std::unique_ptr<KernelTable>> load(const KernelTableConfig& config);
    ~KernelTable();
    KernelTable(const KernelTable&) = delete;
    KernelTable& operator=(const KernelTable&) = delete;

    // As protocol::Switch::admit().
    // `key`: id of its tenant's key, for a later start; 0: none.
    [[nodiscard]] bool admit(std::uint32_t job, std::uint64_t token, std::uint8_t level, std::uint32_t key = 0);
    void dismiss(const control::JobKey& job);
    // Results by group carry this number instead of the job's token. False if the job is not admitted, or if there is
    // no room: the tokens of all jobs keep theirs.
    [[nodiscard]] bool learn_group(const control::JobKey& job, std::uint64_t group_number);
    void forget_group(const control::JobKey& job, std::uint64_t group_number);
    // What carries this group number goes to all these members if it is addressed to the first; to no other if they are
    // more than ATP_XDP_MEMBERS. A shorter list than that of an earlier start is not yet complete, and changes nothing.
    void set_members(const control::JobKey& job, std::uint64_t group_number,
                     std::span<const control::PassedMember> members);
    // Sets the level of an admitted job. At level ATP_LEVELS, its packets are forwarded unaggregated.
    void set_level(const control::JobKey& job, std::uint8_t level);
    void set_key(const control::JobKey& job, std::uint32_t key_id);
    void set_sender(const control::JobKey& job, std::uint8_t number);
    // As protocol::Switch::set_slice() and end_changes(). A change begins `margin` windows later.
    void set_slice(const control::JobKey& job, const atp_range& slice, std::uint32_t weight,
                   std::uint32_t margin = windows_meanwhile);
    void end_changes();
    // Marks packets that leave the interface with this number, or XDP_TX returns there, once they exceed 0.98 of the
    // link's rate. `bytes_per_frame`: what a frame takes of the rate in addition to its own bytes. False without room.
    [[nodiscard]] bool set_port(std::uint32_t interface, std::uint64_t rate, std::uint32_t bytes_per_frame);
    // Frames that left that port with CE while its virtual queue was congested.
    [[nodiscard]] std::uint64_t marked(std::uint32_t interface) const;
    // Nullopt: the job has the whole table.
    [[nodiscard]] std::optional<atp_range> slice_of(const control::JobKey& job) const;

    [[nodiscard]] std::vector<control::AdmittedJob> jobs() const;

    [[nodiscard]] KernelCounters counters() const;
    // Nullopt for a job that is not admitted.
    [[nodiscard]] std::optional<KernelCounters> job_counters(const control::JobKey& job) const;
    [[nodiscard]] std::uint32_t occupied() const;  // reads the whole table

    // Copies one aggregator out of the kernel, or into it. False if the table has no such index.
    [[nodiscard]] bool read(std::uint32_t index, atp_xdp_aggregator& aggregator) const;
    [[nodiscard]] bool write(std::uint32_t index, const atp_xdp_aggregator& aggregator);
    void set_now_us(std::uint32_t now_us);

    // Waits at most `at_most` for control messages that passed, and calls `visit` with each complete message.
    using Visit = std::function<void(const control::PassingMessage& message)>;
    void read_queued_messages(std::chrono::milliseconds at_most, const Visit& visit);

    // Descriptors to attach the programs: for frames that arrive, for the same behind the first, and for frames that
    // leave.
    [[nodiscard]] int descriptor() const;
    [[nodiscard]] int copy_descriptor() const;
    [[nodiscard]] int egress_descriptor() const;
    // True if load() continued with the maps of an earlier start.
    [[nodiscard]] bool took_over() const { return took_over_; }
    // Removes the maps from their folder: the next load() starts with an empty table.
    void unpin();

    // Runs the program in the kernel on a copy of one Ethernet frame, `repeat` times without resetting the copy.
    // Nothing is received or sent.
    [[nodiscard]] Result<Outcome> run(std::span<const std::byte> frame, std::uint32_t repeat = 1) const;
    // The same for the program of copies, which are sent.
    [[nodiscard]] Result<Outcome> run_copy(std::span<const std::byte> frame) const;
    // The same for the egress program. `segment_bytes`: length of the segments into which the kernel will cut the
    // frame; 0: it will not cut the frame.
    [[nodiscard]] Result<Outcome> run_egress(std::span<const std::byte> frame, std::uint32_t segment_bytes = 0) const;

  private:
    struct Skeleton;
    explicit KernelTable(const KernelTableConfig& config);
    [[nodiscard]] Result<void> pin();
    void recover_slots();
    template <class VisitJob>
    void for_each_job(VisitJob&& visit) const;
    template <class Field>
    void set(const control::JobKey& job, Field atp_xdp_job::*field, Field value);
    [[nodiscard]] KernelCounters counters_in(std::uint32_t slot) const;
    void clear_counters(std::uint32_t slot);
    [[nodiscard]] std::optional<std::uint32_t> slot_of(const control::JobKey& job) const;
    [[nodiscard]] std::optional<atp_slice> slice_in(std::uint32_t slot) const;
    void put_slice(std::uint32_t slot, const atp_slice& slice);

    KernelTableConfig config_;
    std::unique_ptr<Skeleton> skeleton_;
    bool took_over_ = false;
    std::vector<std::uint32_t> free_slots_;  // slots of counters and slices that no job has
    std::uint32_t group_keys_ = 0;           // keys that are no tokens
};

// The value of one lane.
[[nodiscard]] inline std::int32_t lane_of(const atp_xdp_aggregator& aggregator, std::size_t lane) {
    const std::uint64_t pair = aggregator.pairs[lane / 2];
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(lane % 2 == 0 ? pair >> 32U : pair));
}

inline void set_lane(atp_xdp_aggregator& aggregator, std::size_t lane, std::int32_t value) {
    const unsigned shift = lane % 2 == 0 ? 32 : 0;
    std::uint64_t& pair = aggregator.pairs[lane / 2];
    pair &= ~(std::uint64_t{UINT32_MAX} << shift);
    pair |= std::uint64_t{static_cast<std::uint32_t>(value)} << shift;
}

}  // namespace atp::xdp
