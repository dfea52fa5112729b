// SPDX-License-Identifier: Apache-2.0
#include "switchml/switch_endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "switchml/packet.h"
#include "wire/control.h"

namespace atp::switchml {
namespace {

using Json = nlohmann::ordered_json;

// A stream without a packet for this long gives its slots to one that finds none.
constexpr Duration idle_after = std::chrono::seconds(30);

Json json_of(const SwitchCounters& counters) {
    return {{"gathered", counters.count(Event::gathered)},
            {"completed", counters.count(Event::completed)},
            {"duplicates", counters.count(Event::duplicate)},
            {"answered", counters.count(Event::answered)},
            {"late", counters.count(Event::late)},
            {"ahead", counters.count(Event::ahead)},
            {"misfits", counters.count(Event::misfit)},
            {"overflows", counters.overflows}};
}

// By reason; reasons that never occurred are left out.
Json refused_json(const SwitchCounters& counters) {
    Json json = Json::object();
    for (std::size_t i = 0; i < counters.refused.size(); ++i) {
        if (counters.refused[i] != 0) json[std::string(to_string(static_cast<DecodeError>(i)))] = counters.refused[i];
    }
    return json;
}

}  // namespace

std::uint32_t slots_in(std::uint64_t memory_bytes, std::uint16_t lanes) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(memory_bytes / Switch::bytes_of_slot(lanes), UINT32_MAX));
}

void SwitchEndpoint::handle_batch(std::span<const wire::Datagram> batch, wire::Outbox& out, Time now) {
    for (const wire::Datagram& datagram : batch) {
        if (!datagram.bytes.empty() && datagram.bytes[0] == std::byte{'{'}) {
            handle_message(datagram.bytes, *datagram.from, out, now);
        } else if (!wire::control_type(datagram.bytes)) {
            handle_packet(datagram.bytes, *datagram.from, out, now);
        }
    }
}

void SwitchEndpoint::handle_packet(std::span<std::byte> bytes, const wire::Address& from, wire::Outbox& out, Time now) {
    if (!names_its_sender(bytes, from)) {
        ++strangers_;
        return;
    }
    const Verdict verdict = switch_.handle_packet(bytes);
    if (verdict.route == Route::drop) return;
    Stream& stream = *streams_[verdict.job];
    stream.used_at = now;
    std::span<const wire::Address> receivers(stream.workers);
    if (verdict.route == Route::worker) receivers = receivers.subspan(verdict.worker, 1);
    bool again = false;
    for (const wire::Address& to : receivers) {
        again = (again && out.repeat(to)) || out.borrow(bytes, to, wire::Ecn::capable_0);
    }
}

// False if the source address is not that of the worker that the packet names. True also for packets that are too short
// for a header or name no stream: the switch drops and counts these packets.
bool SwitchEndpoint::names_its_sender(std::span<const std::byte> bytes, const wire::Address& from) const {
    if (bytes.size() < header_bytes) return true;
    const auto& stream = streams_[wire::load_u8(bytes.data() + offset_job)];
    if (!stream) return true;
    const std::uint8_t worker = wire::load_u8(bytes.data() + offset_worker);
    return worker < stream->workers.size() && stream->workers[worker] == from;
}

// Rank 0 repeats a message until it has the answer.
void SwitchEndpoint::handle_message(std::span<const std::byte> bytes, const wire::Address& from, wire::Outbox& out,
                                    Time now) {
    const auto* const text = reinterpret_cast<const char*>(bytes.data());
    Json message = Json::parse(text, text + bytes.size(), nullptr, false);
    try {
        Stream stream{.name = message.at("stream").get<std::string>(), .workers = {}, .used_at = now};
        const JobConfig job{.workers = static_cast<std::uint8_t>(message.value("workers", Json::array()).size()),
                            .slots_log2 = message.value("slots_log2", std::uint8_t{0}),
                            .lanes = message.value("lanes", std::uint16_t{0}),
                            .mode = static_cast<Mode>(message.value("mode", 0U) % 3)};
        for (const Json& worker : message.value("workers", Json::array())) {
            const auto address = wire::Address::parse(worker.get<std::string>());
            if (address) stream.workers.push_back(*address);
        }
        Json answer{{"stream", stream.name}};
        if (stream.workers.empty()) {
            dismiss(stream.name);
        } else if (const auto refusal = admit(job, stream); !refusal.empty()) {
            answer["refused"] = refusal;
        }
        answer["number"] = number_of(stream.name).value_or(0);
        const std::string written = answer.dump();
        const std::span<std::byte> room = out.reserve(written.size());
        if (room.empty()) return;
        std::memcpy(room.data(), written.data(), written.size());
        out.commit(written.size(), from, wire::Ecn::not_capable);
    } catch (const Json::exception&) {
        return;  // from no rank of a job
    }
}

// ------------------------------------------------------------------------------------------------------------ Streams

std::string SwitchEndpoint::admit(JobConfig job, const Stream& stream) {
    if (number_of(stream.name)) return {};
    const std::uint32_t lanes = switch_.config().lanes;
    if (switch_.config().slots == 0) {
        return fmt::format(
            "the memory of this switch holds no SwitchML slot of {} lanes: restart it with more --memory or fewer "
            "--lanes",
            lanes);
    }
    if (!job.valid() || job.lanes > lanes) {
        return fmt::format("packets of {} lanes exceed the slots of this switch, which have {}: use fewer --lanes",
                           job.lanes, lanes);
    }
    for (const bool again : {false, true}) {
        for (std::size_t i = 0; i < streams_.size(); ++i) {
            const auto number = static_cast<std::uint8_t>(next_ + i);
            if (again && streams_[number] && stream.used_at - streams_[number]->used_at >= idle_after) {
                dismiss(streams_[number]->name);
            }
        }
        for (std::size_t i = 0; i < streams_.size(); ++i) {
            job.job = static_cast<std::uint8_t>(next_ + i);
            if (streams_[job.job]) continue;
            if (!switch_.admit(job)) break;
            streams_[job.job] = stream;
            next_ = static_cast<std::uint8_t>(job.job + 1);
            return {};
        }
    }
    if (std::ranges::all_of(streams_, [](const auto& used) { return used.has_value(); })) {
        return "all 256 SwitchML streams of this switch are in use: wait for another job to end";
    }
    return fmt::format(
        "{} of {} slots are free in the SwitchML pool, but this job needs {} adjacent ones: use a smaller --window, or "
        "more --memory at the switch",
        switch_.free_slots(), switch_.config().slots, job.slots());
}

void SwitchEndpoint::dismiss(std::string_view name) {
    const auto number = number_of(name);
    if (!number) return;
    switch_.dismiss(*number);
    streams_[*number].reset();
}

std::optional<std::uint8_t> SwitchEndpoint::number_of(std::string_view name) const {
    const auto found = std::ranges::find_if(streams_, [&](const auto& used) { return used && used->name == name; });
    if (found == streams_.end()) return std::nullopt;
    return static_cast<std::uint8_t>(found - streams_.begin());
}

// ------------------------------------------------------------------------------------------------------------- Report

std::string SwitchEndpoint::report() const {
    Json packets = json_of(switch_.counters());
    packets["forged"] = switch_.counters().count(Event::forged);
    packets["strangers"] = strangers_;
    Json streams = Json::array();
    for (std::size_t number = 0; number < streams_.size(); ++number) {
        if (!streams_[number]) continue;
        const auto job = static_cast<std::uint8_t>(number);
        streams.push_back({{"job", streams_[number]->name},
                           {"stream", number},
                           {"slots", switch_.job_config(job)->slots()},
                           {"packets", json_of(*switch_.job_counters(job))}});
    }
    return Json{{"switchml",
                 {{"slots", switch_.config().slots},
                  {"free_slots", switch_.free_slots()},
                  {"packets", packets},
                  {"refused", refused_json(switch_.counters())},
                  {"streams", streams}}}}
        .dump();
}

}  // namespace atp::switchml
