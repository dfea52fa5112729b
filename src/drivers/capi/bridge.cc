// SPDX-License-Identifier: Apache-2.0
#include "capi/bridge.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "capi/bridge_text.h"
#include "capi/communicator.h"
#include "capi/log_lines.h"
#include "capi/raised_errors.h"
#include "capi/store.h"
#include "comm/option_table.h"
#include "comm/rank_metrics.h"
#include "control/tenants.h"
#include "keys/key_file.h"
#include "net/local_route.h"
#include "net/resolve.h"
#include "switchd/node.h"
#include "tensor/span_scales.h"

struct atp_bridge_switch {
    std::unique_ptr<atp::switchd::SwitchNode> node;
};

namespace {

using atp::capi::copy_text;
using atp::capi::in_bridge;

atp::Result<atp::wire::Address> first_address(const char* text) {
    const auto found = atp::net::resolve(text);
    if (!found) return tl::unexpected(found.error());
    return found->front();
}

atp::Result<atp::comm::Options> options_of(std::span<const char* const> texts, double timeout_s) {
    atp::comm::Options options;
    for (std::size_t i = 0; i + 1 < texts.size(); i += 2) {
        if (*texts[i + 1] == '\0') continue;
        if (auto done = atp::comm::set_option(options, texts[i], texts[i + 1]); !done) {
            return tl::unexpected(done.error());
        }
    }
    options.timeout = std::chrono::duration_cast<atp::Duration>(std::chrono::duration<double>(timeout_s));
    options.join_timeout = options.timeout;
    options.log_receiver = [](atp::observe::Severity severity, std::string_view line) {
        atp::capi::log_lines().push(severity, line);
    };
    return options;
}

atp::Result<void> find(atp_bridge_find_network* find_network, atp::comm::Options& own, const std::string& offered) {
    auto network = std::make_unique<atp_bridge_network>();
    if (find_network(offered.c_str(), network.get()) != 0) {
        return atp::fail(atp::Operation::rendezvous, atp::Reason::failed, {}, network->refusal);
    }
    own.switch_address = network->switch_address;
    own.listen = network->listen;
    own.hosts_switch = network->hosts_switch != 0;
    return {};
}

}  // namespace

extern "C" {

int32_t atp_bridge_form(atp_store* store, uint32_t rank, uint32_t world, const char* const* options, size_t count,
                        int32_t starts_switch, atp_bridge_find_network* find_network, double timeout_s,
                        atp_communicator** communicator, struct atp_bridge_text* text) {
    *communicator = nullptr;
    return in_bridge(text, [&]() -> atp::Result<void> {
        auto own = options_of({options, count}, timeout_s);
        if (!own) return tl::unexpected(own.error());
        own->starts_switch = starts_switch != 0;
        own->use_network = [find_network](atp::comm::Options& of, const std::string& offered) {
            return find(find_network, of, offered);
        };
        auto formed = atp::comm::Communicator::form(*store->store, rank, world, *own);
        if (!formed) return tl::unexpected(formed.error());
        *communicator = new atp_communicator{*std::move(formed)};
        return {};
    });
}

int32_t atp_bridge_switch_start(const char* listen, const char* key_file, atp_bridge_switch** node,
                                struct atp_bridge_text* text) {
    return in_bridge(text, [&]() -> atp::Result<void> {
        const auto address = first_address(listen);
        if (!address) return tl::unexpected(address.error());
        atp::switchd::SwitchNodeConfig config;
        config.udp.local = *address;
        const auto key = atp::keys::read_key_of_ranks(key_file);
        if (!key) return tl::unexpected(key.error());
        if (*key) config.tenants = atp::control::Tenants::of_one(**key);
        auto started = atp::switchd::SwitchNode::start(config);
        if (!started) return tl::unexpected(started.error());
        copy_text(to_string((*started)->address()), text->text);
        *node = new atp_bridge_switch{*std::move(started)};
        return {};
    });
}

void atp_bridge_switch_stop(atp_bridge_switch* node) { delete node; }

int32_t atp_bridge_address_towards(const char* address, struct atp_bridge_text* text) {
    return in_bridge(text, [&]() -> atp::Result<void> {
        const auto peer = first_address(address);
        if (!peer) return tl::unexpected(peer.error());
        const auto local = atp::net::local_address_towards(*peer);
        if (!local) return tl::unexpected(local.error());
        const std::string text_of_local = to_string(*local);
        const auto parts = atp::wire::split_host_port(text_of_local);
        if (!parts) return tl::unexpected(parts.error());
        copy_text(parts->host, text->text);
        return {};
    });
}

size_t atp_bridge_metrics(int32_t open_metrics, char* buffer, size_t size) {
    using atp::metrics::TextFormat;
    try {
        const std::string text =
            atp::comm::metrics_of_process(open_metrics == 0 ? TextFormat::prometheus : TextFormat::openmetrics);
        std::copy_n(text.data(), std::min(size, text.size()), buffer);
        return text.size();
    } catch (const std::exception&) {
        return 0;
    }
}

int32_t atp_bridge_take_log_line(struct atp_bridge_text* line) {
    const auto taken = atp::capi::log_lines().take();
    if (!taken) return 0;
    copy_text(taken->second, line->text);
    return taken->first;
}

void atp_bridge_close_log_lines(void) { atp::capi::log_lines().close(); }

int32_t atp_bridge_failure_of(const char* text, struct atp_bridge_failure* failure) {
    const auto error = atp::capi::raised_errors().find(text);
    if (!error) return 0;
    copy_text(to_string(error->reason), failure->reason);
    copy_text(to_string(error->operation), failure->operation);
    copy_text(error->place(), failure->address);
    const std::size_t ranks = std::min(error->ranks.size(), std::size(failure->ranks));
    std::copy_n(error->ranks.begin(), ranks, failure->ranks);
    failure->rank_count = static_cast<std::uint32_t>(ranks);
    return 1;
}

uint64_t atp_bridge_elements_of_cell(void) { return atp::tensor::cell_elements(ATP_DTYPE_INT8); }

}  // extern "C"
