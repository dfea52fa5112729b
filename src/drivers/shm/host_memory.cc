// SPDX-License-Identifier: Apache-2.0
#include "shm/host_memory.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <ctime>
#include <new>

#include "net/clock.h"

namespace atp::shm {
namespace {

constexpr std::size_t line = 64;  // of a cache: words that different ranks write lie apart
constexpr std::size_t page = 4096;
constexpr std::size_t text_bytes = 400;
constexpr unsigned range_bits = 16;
// Each begins with a cache line of its own.
constexpr std::size_t slots_at = line;
constexpr std::size_t slot_bytes = 7 * line;
constexpr std::size_t member_bytes = 8 * line;
constexpr std::size_t call_bytes = 7 * line;

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// A text has one writer, which has stopped writing before others read.
void set_text(char* place, std::string_view text) {
    const std::size_t length = std::min(text.size(), text_bytes - 1);
    std::copy_n(text.begin(), length, place);
    place[length] = '\0';
}

std::string text_at(const char* place) { return {place, strnlen(place, text_bytes)}; }

}  // namespace

struct HostMemory::Head {
    alignas(line) std::atomic<std::uint32_t> blamed;  // rank plus 1; 0: none
};

// All zero at first. Chunks are stored as their number plus 1.
struct HostMemory::Slot {
    alignas(line) std::atomic<std::uint64_t> arrived;
    alignas(line) std::atomic<std::uint64_t> claims;  // the chunk, and the next range in the low bits
    alignas(line) std::atomic<std::uint32_t> finished;
    alignas(line) std::atomic<std::uint64_t> offered;
    alignas(line) std::atomic<std::uint64_t> complete;
    alignas(line) std::atomic<std::uint64_t> left;
    alignas(line) std::atomic<std::uint32_t> state;
    std::atomic<std::uint32_t> sleepers;
};

struct HostMemory::Member {
    alignas(line) std::atomic<std::uint64_t> loaded;
    std::atomic<Presence> presence;
    std::atomic<std::uint32_t> process;
    std::atomic<std::uint64_t> answer;
    char why[text_bytes];
};

struct HostMemory::Call {
    alignas(line) std::atomic<std::uint64_t> purpose;
    char text[text_bytes];
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<Presence>::is_always_lock_free);

std::size_t HostShape::vote_bytes() const { return rounded_up(chunk_spans * sizeof(std::uint32_t), line); }

std::size_t HostShape::notes_bytes() const {
    return ranks * vote_bytes() + rounded_up(chunk_cells * sizeof(float), line);
}

std::size_t HostShape::bytes() const {
    const std::size_t words = slots_at + (slots + std::size_t{1}) * slot_bytes + ranks * member_bytes +
                              std::size_t{slots} * ranks * call_bytes;
    const std::size_t place = rounded_up(chunk_lanes * ATP_LANE_BYTES, page);
    const std::size_t notes = notes_bytes();
    return rounded_up(words + slots * notes, page) + slots * (ranks + std::size_t{1}) * place;
}

HostMemory::HostMemory(SharedMemory memory, const HostShape& shape, unsigned rank)
    : memory_(std::move(memory)), shape_(shape), rank_(rank) {
    static_assert(sizeof(Head) <= slots_at && sizeof(Slot) <= slot_bytes);
    static_assert(sizeof(Member) <= member_bytes && sizeof(Call) <= call_bytes);
}

// The words come first: head, slots, members, calls, notes. Lanes follow from the next page on.
template <class Object>
Object& HostMemory::at(std::size_t offset) const {
    return *std::launder(reinterpret_cast<Object*>(memory_.data() + offset));
}

HostMemory::Head& HostMemory::head() const { return at<Head>(0); }

HostMemory::Slot& HostMemory::slot(unsigned number) const { return at<Slot>(slots_at + number * slot_bytes); }

HostMemory::Member& HostMemory::member(unsigned rank) const {
    return at<Member>(slots_at + (shape_.slots + std::size_t{1}) * slot_bytes + rank * member_bytes);
}

HostMemory::Call& HostMemory::call(unsigned slot, unsigned rank) const {
    const std::size_t number = std::size_t{slot} * shape_.ranks + rank;
    return at<Call>(slots_at + (shape_.slots + std::size_t{1}) * slot_bytes + shape_.ranks * member_bytes +
                    number * call_bytes);
}

std::byte* HostMemory::notes_of(unsigned slot, unsigned place) const {
    const std::size_t before = slots_at + (shape_.slots + std::size_t{1}) * slot_bytes + shape_.ranks * member_bytes +
                               std::size_t{shape_.slots} * shape_.ranks * call_bytes;
    return memory_.data() + before + slot * shape_.notes_bytes() + place * shape_.vote_bytes();
}

std::span<float> HostMemory::magnitudes_of(unsigned slot) const {
    return {std::launder(reinterpret_cast<float*>(notes_of(slot, shape_.ranks))), shape_.chunk_cells};
}

std::span<std::uint32_t> HostMemory::votes_of(unsigned slot, unsigned rank) const {
    return {std::launder(reinterpret_cast<std::uint32_t*>(notes_of(slot, rank))), shape_.chunk_spans};
}

std::byte* HostMemory::lanes_of(unsigned slot, unsigned rank) const {
    const std::size_t place = rounded_up(shape_.chunk_lanes * ATP_LANE_BYTES, page);
    const std::size_t all = shape_.slots * (shape_.ranks + std::size_t{1}) * place;
    return memory_.data() + memory_.size() - all + (std::size_t{slot} * (shape_.ranks + 1) + rank) * place;
}

// -------------------------------------------------------------------------------------------------------- HostBoard

// A rank that arrives has written its lanes; the last one to arrive, and all who see the chunk open, read them.
std::uint64_t HostMemory::arrive(unsigned slot_number) {
    member(rank_).loaded.fetch_add(1, std::memory_order_relaxed);
    return slot(slot_number).arrived.fetch_add(1, std::memory_order_acq_rel) + 1;
}

void HostMemory::open(unsigned slot_number, std::uint64_t chunk) {
    Slot& words = slot(slot_number);
    words.finished.store(0, std::memory_order_relaxed);
    words.claims.store((chunk + 1) << range_bits, std::memory_order_release);
}

std::optional<std::uint32_t> HostMemory::unclaimed(unsigned slot_number, std::uint64_t chunk) const {
    const std::uint64_t claims = slot(slot_number).claims.load(std::memory_order_acquire);
    if (claims >> range_bits != chunk + 1) return std::nullopt;
    return static_cast<std::uint32_t>(claims & ((1U << range_bits) - 1));
}

bool HostMemory::claim(unsigned slot_number, std::uint64_t chunk, std::uint32_t range) {
    std::uint64_t expected = (chunk + 1) << range_bits | range;
    return slot(slot_number).claims.compare_exchange_strong(expected, expected + 1, std::memory_order_acq_rel);
}

std::uint32_t HostMemory::finish(unsigned slot_number) {
    return slot(slot_number).finished.fetch_add(1, std::memory_order_acq_rel) + 1;
}

void HostMemory::offer(unsigned slot_number, std::uint64_t chunk) {
    slot(slot_number).offered.store(chunk + 1, std::memory_order_release);
}

bool HostMemory::is_offered(unsigned slot_number, std::uint64_t chunk) const {
    return slot(slot_number).offered.load(std::memory_order_acquire) == chunk + 1;
}

void HostMemory::complete(unsigned slot_number, std::uint64_t chunk) {
    slot(slot_number).complete.store(chunk + 1, std::memory_order_release);
}

bool HostMemory::is_complete(unsigned slot_number, std::uint64_t chunk) const {
    return slot(slot_number).complete.load(std::memory_order_acquire) == chunk + 1;
}

std::uint64_t HostMemory::leave(unsigned slot_number) {
    return slot(slot_number).left.fetch_add(1, std::memory_order_acq_rel) + 1;
}

std::uint64_t HostMemory::left(unsigned slot_number) const {
    return slot(slot_number).left.load(std::memory_order_acquire);
}

std::optional<unsigned> HostMemory::rank_without(unsigned slot_number, std::uint64_t purpose) const {
    for (unsigned rank = 0; rank < shape_.ranks; ++rank) {
        if (call(slot_number, rank).purpose.load(std::memory_order_relaxed) != purpose) return rank;
    }
    return std::nullopt;
}

std::optional<unsigned> HostMemory::lost(std::uint64_t chunk) const {
    // Another process wrote it: a number out of range names nobody.
    if (const std::uint32_t blamed = head().blamed; blamed != 0 && blamed <= shape_.ranks) return blamed - 1;
    std::optional<unsigned> found;
    for (unsigned rank = 0; rank < shape_.ranks; ++rank) {
        const Presence presence = presence_of(rank);
        if (presence == Presence::ended) return rank;
        const bool needed = member(rank).loaded.load(std::memory_order_relaxed) <= chunk;
        if (presence == Presence::left && needed) found = rank;
    }
    return found;
}

// ------------------------------------------------------------------------------------------ What ranks tell each other

void HostMemory::state_call(unsigned slot_number, std::uint64_t purpose, std::string_view text) {
    Call& own = call(slot_number, rank_);
    own.purpose.store(purpose, std::memory_order_relaxed);
    set_text(own.text, text);
}

std::string HostMemory::call_of(unsigned slot_number, unsigned rank) const {
    return text_at(call(slot_number, rank).text);
}

std::vector<unsigned> HostMemory::ranks_without(std::uint64_t chunk) const {
    std::vector<unsigned> ranks;
    for (unsigned rank = 0; rank < shape_.ranks; ++rank) {
        if (member(rank).loaded.load(std::memory_order_relaxed) <= chunk) ranks.push_back(rank);
    }
    return ranks;
}

void HostMemory::blame(unsigned rank) {
    std::uint32_t no_rank = 0;
    head().blamed.compare_exchange_strong(no_rank, rank + 1);
}

void HostMemory::set_presence(unsigned rank, Presence presence, std::string_view why) {
    Member& found = member(rank);
    if (rank == rank_ && found.presence == Presence::here) set_text(found.why, why);
    Presence before = found.presence;
    while (before < presence && !found.presence.compare_exchange_weak(before, presence)) {
    }
    for (unsigned number = 0; number <= shape_.slots; ++number) notify(number);
}

Presence HostMemory::presence_of(unsigned rank) const { return member(rank).presence; }

std::string HostMemory::why_of(unsigned rank) const { return text_at(member(rank).why); }

void HostMemory::answer(std::uint64_t word, std::uint32_t process) {
    member(rank_).process = process;
    member(rank_).answer = word;
}

std::uint64_t HostMemory::answer_of(unsigned rank) const { return member(rank).answer; }

std::uint32_t HostMemory::process_of(unsigned rank) const { return member(rank).process; }

// ---------------------------------------------------------------------------------------------------------- Sleeping

std::uint32_t HostMemory::state_of(unsigned slot_number) const { return slot(slot_number).state; }

// Sequentially consistent: either this sees the sleeper, or the sleeper sees the new state.
void HostMemory::notify(unsigned slot_number) {
    Slot& words = slot(slot_number);
    words.state.fetch_add(1);
    if (words.sleepers == 0) return;
    syscall(SYS_futex, &words.state, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void HostMemory::sleep(unsigned slot_number, std::uint32_t seen, Time until) {
    Slot& words = slot(slot_number);
    const Duration left = std::min<Duration>(until - net::now(), net::longest_sleep);
    if (left <= Duration::zero()) return;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
    words.sleepers.fetch_add(1);
    syscall(SYS_futex, &words.state, FUTEX_WAIT, seen, &timeout, nullptr, 0);
    words.sleepers.fetch_sub(1);
}

}  // namespace atp::shm
