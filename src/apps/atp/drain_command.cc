// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/drain_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "apps/atp/drain_part.h"
#include "apps/atp/metrics_part.h"
#include "apps/common/flags.h"
#include "apps/common/output.h"
#include "apps/common/signals.h"
#include "metrics/http_client.h"

namespace atp::apps {
namespace {

using Json = nlohmann::json;

constexpr Duration between_questions = std::chrono::milliseconds(500);

struct DrainCommand {
    std::string target;
    std::string key_file;
    Duration timeout = std::chrono::seconds(2);
    bool undo = false;
    bool at_once = false;
    bool json = false;
};

int failed(std::string_view why, int status) {
    fmt::print(stderr, "atp drain: {}\n", why);
    return status;
}

std::string text_of(const Json& state) {
    const auto left = state.value("left", 0U);
    if (!state.value("draining", false)) return fmt::format("takes new jobs; {} run\n", left);
    std::string text =
        left == 0 ? "no job is left\n" : fmt::format("takes no new job; {} {} left\n", left, left == 1 ? "is" : "are");
    for (const Json& job : state.value("jobs", Json::array())) {
        const std::string tenant = job.value("tenant", "");
        const std::string name = job.value("name", "");
        text += fmt::format("  job {}{}: {} {} joined{}\n", job.value("job", ""), name.empty() ? "" : " (" + name + ")",
                            job.value("members", 0U), job.value("members", 0U) == 1 ? "member has" : "members have",
                            tenant.empty() ? "" : ", of tenant " + tenant);
    }
    return text;
}

// An answer of the switch; nullopt: it has ended.
using State = Result<std::optional<Json>>;

bool has_ended(const Error& error) {
    return error.reason == Reason::refused || error.code == ENOENT || error.code == ECONNRESET || error.code == EPIPE;
}

State ask(const DrainCommand& options, const std::string& key, const char* method, bool may_have_ended) {
    const auto reply = metrics::call({.target = options.target,
                                      .method = method,
                                      .path = std::string(drain_path),
                                      .key = key,
                                      .timeout = options.timeout});
    // An answer that breaks off is one of a switch that just ended.
    const bool broke_off = !reply && (has_ended(reply.error()) || reply.error().reason == Reason::malformed);
    if (broke_off && may_have_ended) return std::nullopt;
    if (!reply) {
        Error error = reply.error();
        const bool nobody = error.operation == Operation::connect && has_ended(error);
        // errors.md, none: it says what to do
        if (nobody) error.text = "no switch serves it: name the socket of --control, or the address of --http";
        return tl::unexpected(std::move(error));
    }
    const std::string_view body = std::string_view(reply->body).substr(0, reply->body.find_last_not_of('\n') + 1);
    Json state = Json::parse(body, nullptr, false);
    if (reply->status == 200 && state.is_object()) return state;
    // errors.md, none: the switch says what to do
    return fail(Operation::connect, Reason::rejected, options.target,
                fmt::format("HTTP {}: {}", reply->status, body.substr(0, 200)));
}

bool show(const DrainCommand& options, const Json& state, std::string& shown) {
    const std::string text = options.json ? state.dump() + "\n" : text_of(state);
    if (text == shown) return true;
    fmt::print("{}{}", options.json || !shown.empty() ? "" : state.value("address", "") + " ", text);
    shown = text;
    return show_output();
}

// A text that is no address does not become one later.
int status_of(const Error& error) { return error.operation == Operation::parse ? exit_misused : exit_failed; }

int run_drain(const DrainCommand& options) {
    const auto key = operators_key_in(options.key_file);
    if (!key) return failed(to_string(key.error()), exit_misused);
    const StopSignals signals;
    std::string shown;
    auto state = ask(options, *key, options.undo ? "DELETE" : "POST", false);
    while (true) {
        if (!state) return failed(to_string(state.error()), status_of(state.error()));
        if (!*state) {
            if (!options.json) fmt::print("the switch has ended\n");
            return show_output() ? exit_passed : exit_failed;
        }
        if (!show(options, **state, shown)) return exit_failed;
        if (options.undo || options.at_once) return exit_passed;
        if (!(*state)->value("draining", false)) return failed("somebody has ended the draining", exit_failed);
        if (signals.wait_for(between_questions)) {
            return failed("the switch goes on draining; --undo ends that", exit_interrupted);
        }
        state = ask(options, *key, "GET", true);
    }
}

}  // namespace

std::function<int()> register_drain(CLI::App& program) {
    auto options = std::make_shared<DrainCommand>();
    Command& command =
        Command::add(program, "drain", "Let a switch take no new job and end after its last one, and say who is left");
    command.add_option("SWITCH", options->target, "Its local socket (--control), or the address of its --http")
        ->type_name("PATH|ADDRESS")
        ->required();
    Flags flags(command, "Draining");
    flags.text("--http-key", options->key_file, "FILE", "a path",
               "File with the operator's key, which --http needs and a local socket does not [none]");
    flags.flag("--undo", options->undo, "Let the switch take new jobs again, and end");
    flags.flag("--no-wait", options->at_once,
               "Print who is left and end, instead of waiting for the end of the switch");
    flags.parsed("--timeout", options->timeout, "TIME", parse_wait, wait_forms,
                 "Longest wait for an answer of the switch [2s]");
    flags.flag("--json", options->json, "Print each state as one JSON object");
    command.add_example("atp drain /run/atp/control", "Drain the switch of this host's service and wait for its end.");
    command.set_exit({{exit_passed, "the switch has ended, or --undo or --no-wait was answered"},
                      {exit_failed, "the switch does not answer or refused"},
                      {exit_misused, "bad arguments"},
                      {exit_interrupted, "interrupted; the switch goes on draining"}});
    return [options] { return run_drain(*options); };
}

}  // namespace atp::apps
