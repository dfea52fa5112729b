// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/key_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/common/flags.h"
#include "crypto/tenant_key.h"
#include "keys/key_file.h"
#include "net/random.h"

namespace atp::apps {
namespace {

// Short enough to read aloud; who assigns ids otherwise gives --id.
constexpr std::uint32_t most_chosen_id = 999'999;

struct KeyOptions {
    std::vector<std::string> action;  // "new" FILE, or "for" SWITCH FILE
    std::uint32_t id = 0;             // 0: chosen at random
    std::string tenant = "default";
    std::string from;

    [[nodiscard]] bool is_new() const { return action.size() == 2 && action[0] == "new"; }
    [[nodiscard]] bool is_for_switch() const { return action.size() == 3 && action[0] == "for"; }
};

std::optional<std::string> parse_name(std::string_view text) {
    return crypto::is_key_name(text) ? std::optional<std::string>(text) : std::nullopt;
}

crypto::TenantKey new_key(const KeyOptions& options) {
    const auto chosen = static_cast<std::uint32_t>(1 + net::random_bits() % most_chosen_id);
    return {.id = options.id == 0 ? chosen : options.id, .tenant = options.tenant, .key = keys::random_key()};
}

Result<crypto::TenantKey> key_for_switch(const KeyOptions& options) {
    const char* const variable = std::getenv("ATP_KEY_FILE");
    const std::string from = options.from.empty() && variable != nullptr ? variable : options.from;
    if (from.empty()) {
        return fail(Operation::open, Reason::malformed, {},
                    "the key of the tenant is not named: give --from FILE, or set ATP_KEY_FILE");
    }
    auto tenant = keys::read_key_file(from);
    if (!tenant) return tenant;
    if (!tenant->at_switch.empty()) {
        return fail(Operation::open, Reason::malformed, from,
                    "is itself the key for one switch: name the key file of the tenant");
    }
    return crypto::key_for_switch(*tenant, options.action[1]);
}

int run_key(const KeyOptions& options) {
    const Result<crypto::TenantKey> key = options.is_new() ? new_key(options) : key_for_switch(options);
    const Result<void> written = key ? keys::write_key_file(options.action.back(), *key) : tl::unexpected(key.error());
    if (!written) {
        fmt::print(stderr, "atp key: {}\n", to_string(written.error()));
        return exit_failed;
    }
    fmt::print("key {} of tenant {}{}: {}, which only you can read\n", key->id, key->tenant,
               key->at_switch.empty() ? "" : " for switch " + key->at_switch, options.action.back());
    return exit_passed;
}

}  // namespace

std::function<int()> register_key(CLI::App& program) {
    auto options = std::make_shared<KeyOptions>();
    Command& command = Command::add(program, "key", "Write a key file, which ranks of a job share");
    command
        .add_option("action", options->action,
                    "new FILE: write a new key; for SWITCH FILE: write the key of one switch")
        ->type_name("ACTION")
        ->expected(2, 3)
        ->required();
    Flags flags(command, "Key");
    flags.number("--id", options->id, 1, UINT32_MAX, "Number that everybody may see, which tells keys apart [random]");
    flags.parsed("--tenant", options->tenant, "NAME", parse_name, crypto::key_name_forms,
                 "Name of the team that has the key [default]");
    flags.text("--from", options->from, "FILE", "a path",
               "Key file of the tenant, from which the key of a switch follows [ATP_KEY_FILE]");
    command.add_example("atp key new vision.key --tenant vision", "Write a key for the team vision.");
    command.add_example(
        "atp key for leaf3 leaf3.key --from vision.key",
        "Write what the switch leaf3 may know: a key with which nobody opens what ranks tell each other.");
    command.set_exit(
        {{exit_passed, "written"}, {exit_failed, "a file cannot be read or written"}, {exit_misused, "bad arguments"}});
    command.parse_complete_callback([options] {
        if (!options->is_new() && !options->is_for_switch()) {
            throw CLI::ValidationError("ACTION: use `new FILE` or `for SWITCH FILE`");
        }
        if (options->is_for_switch() && !crypto::is_key_name(options->action[1])) {
            throw CLI::ValidationError(
                fmt::format("ACTION: '{}' is no name of a switch; use {}", options->action[1], crypto::key_name_forms));
        }
    });
    return [options] { return run_key(*options); };
}

}  // namespace atp::apps
