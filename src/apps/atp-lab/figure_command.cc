// SPDX-License-Identifier: Apache-2.0
#include "apps/atp-lab/figure_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/common/child_processes.h"
#include "apps/common/flags.h"
#include "apps/common/interruption.h"
#include "apps/common/output.h"
#include "apps/common/progress.h"
#include "figure/catalogue.h"
#include "figure/chart_table.h"
#include "figure/files.h"
#include "figure/page.h"
#include "net/clock.h"

namespace atp::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::minutes command_limit{30};
// Further points are in the CSV only.
constexpr std::size_t rows_shown = 24;
constexpr int bar_width = 24;
constexpr const char* measuring_programs = "bench/cluster/";
constexpr const char* provenance_program = "tools/provenance.py";

struct FigureOptions {
    std::string what;
    std::string out;   // empty: the folder of the page, or the current folder
    std::string kept;  // folder of the results of bench/cluster; empty: by revision
    std::string version;
    bool again = false;
    bool json = false;
    figure::LabOptions lab{.threads = std::max(1U, std::thread::hardware_concurrency())};
};

int misused(const std::string& text) {
    fmt::print(stderr, "atp-lab figure: {}\n", text);
    return exit_misused;
}

int failed(std::string_view id, const std::string& text) {
    fmt::print(stderr, "atp-lab figure: {}: {}\n", id, text);
    return exit_failed;
}

figure::Catalogue figures_of(const FigureOptions& options) {
    return options.lab.real ? figure::real_catalogue() : figure::catalogue();
}

int print_list(figure::Catalogue figures, bool json) {
    if (!json) {
        for (const figure::Figure* one : figures) {
            fmt::print("{:<20} {} ({})\n", one->id, one->title, one->source);
        }
        return exit_passed;
    }
    Json all = Json::array();
    for (const figure::Figure* one : figures) {
        all.push_back(Json{{"id", one->id}, {"title", one->title}, {"source", one->source}, {"claim", one->claim}});
    }
    fmt::print("{}\n", all.dump(2));
    return exit_passed;
}

std::string unknown_figure(const FigureOptions& options) {
    const std::vector<std::string_view> near = figure::ids_near(options.what, figures_of(options));
    const std::string_view real = options.lab.real ? " --real" : "";
    if (near.empty()) {
        return fmt::format("figure {} is unknown: list them with `atp-lab figure list{}`", options.what, real);
    }
    return fmt::format("figure {} is unknown; similar: {}", options.what, fmt::join(near, " or "));
}

// null: no finite number.
Json number_of(std::optional<double> number) { return number && std::isfinite(*number) ? Json(*number) : Json(); }

Json to_json(const figure::Check& check) {
    return Json{{"what", check.what},
                {"value", number_of(check.value)},
                {"low", number_of(check.low)},
                {"high", number_of(check.high)},
                {"paper", number_of(check.paper)},
                {"deviation", number_of(check.deviation())},
                {"deviation_text", check.deviation_text()},
                {"expected", check.expected},
                {"least", number_of(check.least)},
                {"most", number_of(check.most)},
                {"verdict", check.assessed() ? to_string(check.verdict()) : "not judged"}};
}

Json to_json(const figure::Drawn& drawn) {
    Json checks = Json::array();
    for (const figure::Check& check : drawn.drawing.checks) checks.push_back(to_json(check));
    Json inputs = Json::array();
    for (const figure::Input& input : drawn.figure->inputs) {
        inputs.push_back(Json{{"name", input.name}, {"origin", to_string(input.origin)}, {"source", input.source}});
    }
    return Json{{"id", drawn.figure->id},
                {"claim", drawn.figure->claim},
                {"ours", drawn.drawing.ours()},
                {"basis", to_string(drawn.drawing.basis)},
                {"verdict", to_string(drawn.drawing.verdict())},
                {"decided_by", drawn.drawing.turns},
                {"gaps", drawn.drawing.gaps},
                {"inputs", std::move(inputs)},
                {"checks", std::move(checks)}};
}

void print_check(const figure::Check& check) {
    std::string assessed;
    if (check.assessed()) {
        const std::string deviates = check.deviation_text();
        assessed = fmt::format(" ({}: {}{}{})", check.expected, deviates, deviates.empty() ? "" : ", ",
                               to_string(check.verdict()));
    }
    fmt::print("{}: {}{}\n", check.what, check.value_text(), assessed);
}

void print_text(const figure::Drawn& drawn) {
    const figure::Figure& one = *drawn.figure;
    const figure::Drawing& drawing = drawn.drawing;
    fmt::print("{}: {}\nclaim ({}): {}\n", one.id, one.title, one.source, one.claim);
    for (const figure::Chart& chart : drawing.charts) {
        const figure::Table table = figure::table_of(chart);
        if (table.rows.size() <= rows_shown) fmt::print("\n{}\n", figure::to_text(table));
    }
    for (const figure::Check& check : drawing.checks) print_check(check);
    const figure::Verdict verdict = drawing.verdict();
    fmt::print("verdict: {}{}\n", to_string(verdict), drawing.skipped.empty() ? "" : ": " + drawing.skipped);
    fmt::print("basis: {}\n", to_string(drawing.basis));
    if (!drawing.turns.empty()) fmt::print("inputs decide: {}\n", fmt::join(drawing.turns, ", "));
    for (const std::string& gap : drawing.gaps) fmt::print("differs from simulation: {}\n", gap);
    if (verdict == figure::Verdict::differs && !one.differences.empty()) fmt::print("{}\n", one.differences);
}

// The name `atp` selects this program; other programs have a path. The programs of bench/cluster measure those beside
// this one.
tl::expected<std::string, figure::CommandFailure> run_command(const std::vector<std::string>& command,
                                                              const Interruption& interruption) {
    std::vector<std::string> found = command;
    if (command.front() == "atp") found.front() = own_program();
    if (command.front().starts_with(measuring_programs)) {
        found.insert(found.end(), {"--bin", std::filesystem::path(own_program()).parent_path().string()});
    }
    auto printed = run_orderly(found, interruption, net::now() + command_limit);
    if (!printed) {
        const bool lacks = printed.error().reason == Reason::unsupported;
        return tl::unexpected(figure::CommandFailure{.text = printed.error().text, .lacks = lacks});
    }
    return *std::move(printed);
}

// Results of another revision or build are no results of this one. `version`: of this program, "atp 0.1.0 (66bf5bfe)".
std::filesystem::path kept_folder(const std::string& version) {
    const std::size_t begin = version.find('(') + 1;
    const std::string commit = begin == 0 ? "unknown" : version.substr(begin, version.find(')') - begin);
    return std::filesystem::path(own_program()).parent_path().parent_path() / "figures" / commit;
}

// Draws figures one after the other, each on all cores.
class Artist {
  public:
    Artist(const FigureOptions& options, const std::vector<const figure::Figure*>& figures) : lab_(options.lab) {
        for (const figure::Figure* one : figures) seconds_left_ += one->seconds;
        lab_.kept = options.kept.empty() ? kept_folder(options.version) : std::filesystem::path(options.kept);
        if (options.again) figure::forget(lab_.kept);
        lab_.stop = &stop_;
        lab_.command = [this](const auto& command) { return run_command(command, interruption_); };
    }

    tl::expected<figure::Drawn, figure::Failure> draw(const figure::Figure& one) {
        const auto begin = std::chrono::steady_clock::now();
        lab_.progress = [&](double share) {
            const auto full = static_cast<int>(share * bar_width);
            const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
            progress_.show(fmt::format("{:<18} [{:=<{}}{:{}}] {:3.0f} %, {:.0f} s{}", one.id, "", full, "",
                                       bar_width - full, 100 * share, time.count(), left(one, share)));
        };
        auto drawing = figure::draw(one, lab_);
        progress_.clear();
        seconds_left_ -= one.seconds;
        if (!drawing) return tl::unexpected(std::move(drawing).error());
        return figure::Drawn{.figure = &one, .drawing = *std::move(drawing)};
    }

    // The line of the page that says where its figures come from.
    std::string provenance() {
        tl::expected<std::string, figure::CommandFailure> line = tl::unexpected(figure::CommandFailure{});
        if (std::filesystem::exists(provenance_program)) {
            std::vector<std::string> command{provenance_program};
            if (!lab_.real) {
                command.insert(command.end(), {"--gpt-text", "scaling_in_effect=fixed, 2^26",
                                               "lanes_in_effect=62 int32, unless a setup says otherwise",
                                               "window_in_effect=256, unless a setup says otherwise"});
            }
            line = lab_.command(command);
        }
        if (!line) return "<!-- provenance: {} -->";
        return line->substr(0, line->find('\n'));
    }

  private:
    // Of all figures that measure, by the times that they usually take.
    [[nodiscard]] std::string left(const figure::Figure& one, double share) const {
        if (seconds_left_ == 0) return {};
        const double seconds = seconds_left_ - share * one.seconds;
        return fmt::format(", about {:.0f} min left", std::ceil(seconds / 60));
    }

    double seconds_left_ = 0;
    std::atomic<bool> stop_ = false;
    Interruption interruption_;
    Interruption::Reach reach_ = interruption_.ends([this] { stop_ = true; });
    Progress progress_;
    figure::LabOptions lab_;
};

std::vector<const figure::Figure*> requested(const FigureOptions& options) {
    const figure::Catalogue all = figures_of(options);
    if (options.what == "all") return {all.begin(), all.end()};
    const figure::Figure* one = figure::find_figure(options.what, all);
    return one == nullptr ? std::vector<const figure::Figure*>{} : std::vector{one};
}

void print_one(const figure::Drawn& drawn, bool all) {
    if (all) {
        fmt::print("{:<20} {}: {}\n", drawn.figure->id, to_string(drawn.drawing.verdict()), drawn.drawing.ours());
    } else {
        print_text(drawn);
    }
    (void)show_output();
}

int run_figure(const FigureOptions& options) {
    if (options.what == "list") return print_list(figures_of(options), options.json);
    const std::vector<const figure::Figure*> figures = requested(options);
    if (figures.empty()) return misused(unknown_figure(options));
    const bool all = options.what == "all";
    const std::filesystem::path out = !options.out.empty() ? options.out : all ? "docs/results" : ".";
    const std::filesystem::path pictures = all ? out / "figures" : out;
    if (auto made = figure::make_folder(pictures); !made) return failed(options.what, made.error());
    Artist artist(options, figures);
    std::vector<figure::Drawn> drawn;
    for (const figure::Figure* one : figures) {
        auto done = artist.draw(*one);
        if (!done && done.error().interrupted) return exit_interrupted;
        if (!done) return failed(one->id, done.error().text);
        if (auto written = write_files(*done, options.lab, pictures); !written) return failed(one->id, written.error());
        drawn.push_back(*std::move(done));
        if (!options.json) print_one(drawn.back(), all);
    }
    if (all) {
        const std::string page = figure::page_of(drawn, options.lab, "figures", artist.provenance());
        if (auto done = figure::write_file(out / figure::page_name(options.lab), page); !done)
            return failed("all", done.error());
    }
    if (options.json) {
        Json array = Json::array();
        for (const figure::Drawn& one : drawn) array.push_back(to_json(one));
        fmt::print("{}\n", array.dump(2));
    }
    const bool differs = std::ranges::any_of(
        drawn, [](const figure::Drawn& one) { return one.drawing.verdict() == figure::Verdict::differs; });
    return differs ? exit_failed : exit_passed;
}

}  // namespace

std::function<int()> register_figure(CLI::App& program) {
    auto options = std::make_shared<FigureOptions>();
    Command& command =
        Command::add(program, "figure", "Reproduce the figures of the papers and compare them with the claims");
    FlagText what{.meaning = "list, all, or the id of a figure", .words = {"list", "all"}};
    for (const figure::Figure* one : figure::catalogue()) what.words.emplace_back(one->id);
    command.describe(command.add_option("what", options->what)->type_name("WHAT")->required(), std::move(what));
    Flags flags(command, "Drawing");
    flags.flag("--real", options->lab.real,
               "Measure the figures on real packets in network namespaces, as root and in the project's folder");
    flags.flag("--quick", options->lab.quick,
               "Run fewer and smaller points, which show the same shape, and vary no input");
    flags.number("--seed", options->lab.seed, 0, UINT64_MAX, "Seed of all random decisions [1]");
    flags.number("--runs", options->lab.runs, 1, 1000,
                 "Seeds of each figure, from --seed on; with --real: rounds [5; with --real: 3; with --quick: 1]");
    flags.number("--threads", options->lab.threads, 1, 1024,
                 "Threads that run points; results do not depend on it [all cores]");
    flags.text("--out", options->out, "FOLDER", "a path",
               "Folder for ID.csv and ID.svg; with all: for a page and a folder figures [the current folder; with all: "
               "docs/results]");
    flags.text("--kept", options->kept, "FOLDER", "a path",
               "Folder of finished measurements, which a run with --real takes from there instead of measuring again "
               "[the folder figures/REVISION of the build]");
    flags.flag("--again", options->again, "Remove finished measurements first");
    flags.flag("--json", options->json,
               "Print a JSON array of {id, claim, ours, basis, verdict, decided_by, gaps, inputs, checks} instead of "
               "tables");
    command.add_example("atp-lab figure list", "Print the id, title and source of each figure.");
    command.set_exit({{exit_passed, "no figure differs"},
                      {exit_failed, "a figure differs or failed"},
                      {exit_misused, "bad arguments"},
                      {exit_interrupted, "after Ctrl-C"}});
    options->version = program.version();
    return [options] { return run_figure(*options); };
}

}  // namespace atp::apps
