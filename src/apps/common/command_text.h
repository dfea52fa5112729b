// SPDX-License-Identifier: Apache-2.0
// A subcommand, and what it says about itself. Its help, `--describe`, and through tools/write_cli the man page, the
// completions and docs/reference/cli.md are all written from this one description, so they cannot differ.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atp::apps {

inline constexpr std::string_view address_forms = "host:port or [host]:port";

struct FlagText {
    std::string meaning;
    std::string values{};              // accepted ones in short, "1 to 64"; empty: the name of the value says enough
    std::string fallback{};            // the default; empty: none is shown
    std::vector<std::string> words{};  // values that a shell completes
};

// `help` may end with its default in brackets. `accepted` completes "use ..." in errors; empty: the flag takes no
// value.
[[nodiscard]] FlagText flag_text(std::string_view help, std::string_view accepted);

struct ExampleText {
    std::string line;  // what to type, with the name of the program
    std::string effect;
};

struct ExitText {
    int status;
    std::string when;
};

// What values of a name look like, for example SIZE.
struct ValueText {
    std::string_view name;
    std::string_view looks;
};

// A subcommand of a program.
//
// Ownership: belongs to its program. In tests it stands alone, without a program.
// Calling order: flags through Flags (flags.h), then examples and exit status. Parsing and help come after that.
class Command final : public CLI::App {
  public:
    static Command& add(CLI::App& program, const std::string& name, const std::string& description);
    explicit Command(const std::string& name, const std::string& description = {}, CLI::App* program = nullptr);

    void describe(const CLI::Option* option, FlagText text);
    void add_example(std::string line, std::string effect);
    // Text in a fixed layout, shown below the examples: files that the examples name.
    void set_files(std::string text) { files_ = std::move(text); }
    void set_exit(std::vector<ExitText> exit) { exit_ = std::move(exit); }

    // The words after the name of the command, for one that reads its --config again.
    void set_typed(std::vector<std::string> words) { typed_ = std::move(words); }
    [[nodiscard]] const std::vector<std::string>& typed() const { return typed_; }

    [[nodiscard]] FlagText text_of(const CLI::Option* option) const;
    [[nodiscard]] const std::vector<ExampleText>& examples() const { return examples_; }
    [[nodiscard]] const std::string& files() const { return files_; }
    [[nodiscard]] const std::vector<ExitText>& exit_status() const { return exit_; }
    // Values that the names of the flags' values leave open.
    [[nodiscard]] std::vector<ValueText> values() const;

    // `path`: as typed, "atp switch".
    [[nodiscard]] std::string help_text(const std::string& path) const;

  private:
    std::map<const CLI::Option*, FlagText> texts_;
    std::vector<ExampleText> examples_;
    std::string files_;
    std::vector<ExitText> exit_;
    std::vector<std::string> typed_;
};

// "--listen", or "--server" and "--no-server".
[[nodiscard]] std::vector<std::string> names_of(const CLI::Option& option);
// False for a flag without a value.
[[nodiscard]] bool takes_value(const CLI::Option& option);
[[nodiscard]] bool may_repeat(const CLI::Option& option);
// "FILE...", "[NAME]".
[[nodiscard]] std::string positional_usage(const CLI::Option& option);

// The help of the whole program.
[[nodiscard]] std::string help_of_program(const CLI::App& program);

}  // namespace atp::apps
