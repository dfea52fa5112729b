// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/top_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/atp/switch_sources.h"
#include "apps/atp/top_text.h"
#include "apps/common/flags.h"
#include "apps/common/interruption.h"
#include "apps/common/output.h"
#include "net/clock.h"

namespace atp::apps {
namespace {

struct TopOptions {
    std::vector<std::string> switches;
    Duration interval = std::chrono::seconds(1);
    Duration timeout = std::chrono::milliseconds(500);
};

struct Size {
    std::size_t width = 80;
    std::size_t height = 24;
};

// A terminal that shows a whole screen and gives single keys. The destructor restores it, with what it showed before.
class Screen {
  public:
    Screen() {
        tcgetattr(STDIN_FILENO, &before_);
        termios keys = before_;
        keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        // A key that stops or aborts the process would leave the terminal as it is here.
        for (const int signal_key : {VSUSP, VQUIT}) keys.c_cc[signal_key] = _POSIX_VDISABLE;
        tcsetattr(STDIN_FILENO, TCSANOW, &keys);
        fmt::print("\033[?1049h\033[?25l");  // the other screen, no cursor
    }
    ~Screen() {
        std::fputs("\033[?25h\033[?1049l", stdout);  // unlike print(), never throws
        std::fflush(stdout);
        tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;

    [[nodiscard]] static Size size() {
        winsize window{};
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) return {};
        return {window.ws_col, window.ws_row};
    }
    static bool show(const std::vector<std::string>& lines) {
        // Clears a line before it is written: after one that fills the width, the cursor stands on its last letter.
        fmt::print("\033[H");
        for (std::size_t i = 0; i < lines.size(); ++i) {
            fmt::print("{}{}{}", i == 0 ? "" : "\r\n", i + 1 == lines.size() ? "\033[J" : "\033[K", lines[i]);
        }
        return show_output();
    }
    // Whether q, or the end of the input, came by then, or had come before.
    static bool ends_by(Time until, const Interruption& interruption) {
        constexpr Duration look_interval = std::chrono::milliseconds(50);
        while (!interruption.came()) {
            const Duration left = std::max(until - net::now(), Duration::zero());
            pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
            const auto wait = std::chrono::ceil<std::chrono::milliseconds>(std::min(left, look_interval));
            char key = 0;
            if (poll(&input, 1, static_cast<int>(wait.count())) > 0) {
                if (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q') return true;
            } else if (left == Duration::zero()) {
                return false;
            }
        }
        return true;
    }

  private:
    termios before_{};
};

int run_top(const TopOptions& options) {
    if (isatty(STDOUT_FILENO) == 0 || isatty(STDIN_FILENO) == 0) {
        fmt::print(stderr, "atp top: needs a terminal; for a program, use atp stats --json\n");
        return exit_misused;
    }
    const char* const terminal = std::getenv("TERM");
    if (terminal == nullptr || *terminal == '\0' || std::string_view(terminal) == "dumb") {
        fmt::print(stderr, "atp top: needs a terminal that moves its cursor (TERM); or use atp stats --watch\n");
        return exit_misused;
    }
    Interruption interruption;
    const auto sources = sources_of(options.switches, options.timeout);
    if (!sources) {
        fmt::print(stderr, "atp top: {}\n", to_string(sources.error()));
        return exit_misused;
    }
    const auto reach = interruption.ends(sources->close);
    const Screen screen;
    Look before;
    Time seen{};
    while (true) {
        const Time begin = net::now();
        Look now{options.switches, metrics::ask(sources->sources)};
        const Time at = net::now();
        const Size size = Screen::size();
        const double seconds = std::chrono::duration<double>(at - seen).count();
        if (!Screen::show(top_lines(now, before, seconds, size.width, size.height))) return exit_failed;
        if (Screen::ends_by(begin + options.interval, interruption)) return exit_passed;
        before = std::move(now);
        seen = at;
    }
}

}  // namespace

std::function<int()> register_top(CLI::App& program) {
    auto options = std::make_shared<TopOptions>();
    Command& command = Command::add(program, "top", "Show switches and jobs, and what they do now, in a terminal");
    command.add_option("SWITCH", options->switches, "Addresses of switches")->type_name("ADDRESS")->required();
    Flags flags(command, "Output");
    flags.parsed("--interval", options->interval, "TIME", parse_wait, wait_forms, "Time between two looks [1s]");
    flags.parsed("--timeout", options->timeout, "TIME", parse_wait, wait_forms,
                 "Longest wait for the answer of a switch [500ms]");
    command.add_example("atp top 10.0.0.1:4790 10.0.1.1:4790", "Watch two switches; q or Ctrl-C ends.");
    command.set_exit({{exit_passed, "ended by q, Ctrl-C or SIGTERM"},
                      {exit_failed, "the output failed"},
                      {exit_misused, "bad arguments, or no terminal"}});
    return [options] { return run_top(*options); };
}

}  // namespace atp::apps
