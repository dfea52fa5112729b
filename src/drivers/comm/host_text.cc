// SPDX-License-Identifier: Apache-2.0
#include "comm/host_text.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

namespace atp::comm {
namespace {

constexpr std::string_view parts_end = "\n";

std::string name_of(RankNumbers ranks, unsigned rank) { return fmt::format("rank {}", ranks[rank]); }

// Of a part of a note, with blanks between the numbers.
std::vector<std::uint32_t> numbers_in(std::string_view text) {
    std::vector<std::uint32_t> numbers;
    const char* const end = text.data() + text.size();
    for (const char* at = text.data(); at < end; ++at) at = std::from_chars(at, end, numbers.emplace_back()).ptr;
    return numbers;
}

// Of the number that another process wrote.
Reason reason_of(std::uint32_t number) {
    return number < static_cast<std::uint32_t>(Reason::failed) ? static_cast<Reason>(number) : Reason::failed;
}

// The part of the note up to the next end, which is removed.
std::string_view take_part(std::string_view& note) {
    const std::size_t end = note.find(parts_end);
    const std::string_view part = note.substr(0, end);
    note.remove_prefix(end == std::string_view::npos ? note.size() : end + parts_end.size());
    return part;
}

}  // namespace

// The number of the reason, the peer, its ranks, its address and the text. Without fmt, which may throw, because
// destructors call this.
std::string note_of(const Error& error) {
    std::string note = std::to_string(static_cast<unsigned>(error.reason));
    note.append(parts_end).append(error.peer).append(parts_end);
    for (std::size_t i = 0; i < error.ranks.size(); ++i) {
        if (i != 0) note += ' ';
        note += std::to_string(error.ranks[i]);
    }
    return note.append(parts_end).append(error.address).append(parts_end).append(error.text);
}

Error error_of_lost(const shm::HostMemory& memory, RankNumbers ranks, unsigned lost) {
    const std::string rank = name_of(ranks, lost);
    const std::uint32_t process = memory.process_of(lost);
    Error error{.operation = Operation::wait, .reason = Reason::closed, .peer = rank, .ranks = {ranks[lost]}};
    const std::string note = memory.why_of(lost);
    if (memory.presence_of(lost) == shm::Presence::left) {
        // errors.md, runs, closed: that rank, on this host, raised an error or ended early
        error.text = fmt::format("{} (process {}) left the job", rank, process);
        return error;
    }
    if (note.empty()) {
        // errors.md, runs, closed: it crashed or was killed, and shared this host's memory
        error.text = fmt::format("the process {} of {}, on this host, has ended", process, rank);
        return error;
    }
    std::string_view left(note);
    const std::vector<std::uint32_t> reason = numbers_in(take_part(left));
    const std::string_view peer = take_part(left);
    const std::vector<std::uint32_t> blamed = numbers_in(take_part(left));
    const std::string_view address = take_part(left);
    // A network, or a rank, that ends the job for one rank of a host ends it for all of them.
    if (!peer.empty()) {
        error.reason = reason_of(reason.empty() ? UINT32_MAX : reason.front());
        error.peer = peer;
        error.ranks = blamed;
        error.address = address;
        error.text = left;
        return error;
    }
    // errors.md, runs, closed: that rank, on this host, met the error that follows
    error.text = fmt::format("{} (process {}) ended the job: {}", rank, process, left);
    return error;
}

Error error_of_mismatch(const shm::HostMemory& memory, RankNumbers ranks, const protocol::HostAction& action) {
    const std::string other = name_of(ranks, action.rank);
    return {
        .operation = Operation::wait,
        .reason = Reason::mismatched,
        .peer = other,
        // errors.md, runs, mismatched: operations, types, sizes or roots differ between ranks of this host
        .text = fmt::format("{} called {}, but {} called {}: make all ranks call the same sequence with equal types "
                            "and sizes",
                            other, memory.call_of(action.slot, action.rank), name_of(ranks, memory.rank()),
                            memory.call_of(action.slot, memory.rank())),
        .ranks = {ranks[action.rank]}};
}

Error error_of_silence(const shm::HostMemory& memory, RankNumbers ranks, std::uint64_t chunk) {
    Error error{.operation = Operation::wait, .reason = Reason::timed_out};
    std::vector<unsigned> missing = memory.ranks_without(chunk);
    std::erase(missing, memory.rank());
    if (missing.empty()) {
        // errors.md, runs, timed out: the timeout is too short, or the network loses many packets
        error.text = "timed out although all ranks of this host called it: raise the timeout";
    } else {
        for (const unsigned rank : missing) error.ranks.push_back(ranks[rank]);
        error.peer = list_of_ranks(error.ranks);
        // errors.md, runs, timed out: the named ranks did not call the operation
        error.text = "no data of this operation arrived from them: check that these processes run and call it";
    }
    return error;
}

}  // namespace atp::comm
