// SPDX-License-Identifier: Apache-2.0
#include "figure/page.h"

#include <fmt/format.h>

#include "figure/chart_table.h"
#include "figure/files.h"

namespace atp::figure {
namespace {

// Escapes `|`, which would end a cell in a Markdown table.
std::string cell(std::string_view text) {
    std::string out;
    for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
    return out;
}

std::string checks_table(std::span<const Check> checks) {
    std::string table = "| what | ours | the paper | deviation | |\n|---|---|---|---|---|\n";
    for (const Check& check : checks) {
        const std::string_view met = check.assessed() ? to_string(check.verdict()) : "not judged";
        table += fmt::format("| {} | {} | {} | {} | {} |\n", cell(check.what), check.value_text(), check.expected,
                             check.deviation_text(), met);
    }
    return table;
}

std::string inputs_of(const Figure& figure) {
    std::string text;
    for (const Input& input : figure.inputs) {
        text +=
            fmt::format("{}{} ({}: {})", text.empty() ? "" : "; ", input.name, to_string(input.origin), input.source);
    }
    return text.empty() ? text : fmt::format("**Inputs**: {}.\n\n", text);
}

std::string section_of(const Drawn& drawn, const LabOptions& options, std::string_view folder) {
    const Figure& figure = *drawn.figure;
    const Verdict verdict = drawn.drawing.verdict();
    std::string text =
        fmt::format("## {}: {}\n\n**Claim** ({}): {}\n\n", figure.id, figure.title, figure.source, figure.claim);
    if (verdict == Verdict::skipped) return text + fmt::format("**Skipped**: {}\n", drawn.drawing.skipped);
    const std::string file = fmt::format("{}/{}", folder, file_of(figure, options));
    text += fmt::format("**Setup**: {}\n\n{}![{}]({}.svg)\n\n{}\n", figure.setup, inputs_of(figure), figure.title, file,
                        checks_table(drawn.drawing.checks));
    text += fmt::format("**Verdict: {}** (basis: {}).", to_string(verdict), to_string(drawn.drawing.basis));
    if (!drawn.drawing.turns.empty()) text += fmt::format(" Inputs decide: {}.", fmt::join(drawn.drawing.turns, ", "));
    if (!figure.differences.empty()) text += fmt::format(" {}", figure.differences);
    if (figure.differences.empty() && verdict == Verdict::differs) text += " Cause unknown.";
    if (!drawn.drawing.gaps.empty()) {
        text += fmt::format("\n\nSimulation and measurement differ by more than 15 %: {}.",
                            fmt::join(drawn.drawing.gaps, "; "));
    }
    return text + fmt::format("\n\n`{}` ([points]({}.csv))\n", command_of(figure.id, options), file);
}

constexpr std::string_view of_simulated =
    "The simulator runs the shipped state machines.\n"
    "[Simulate](../research/simulate.md) describes its networks, hosts and other systems, and what they omit. "
    "[Reproduce](../research/reproduce.md)\n"
    "says what a basis and a verdict mean. Each row of a table compares our median, and the interval of the runs, "
    "with the paper.\n"
    "Runs of one build with one seed give one set of numbers, except fig19 and switchml-fig8, which measure this "
    "machine.\n"
    "Another revision may give other numbers.";
constexpr std::string_view of_real =
    "Processes send real packets over links of limited rates, in network namespaces.\n"
    "[Emulate links](../research/emulate-links.md) describes the links, and [Reproduce](../research/reproduce.md) what "
    "a basis "
    "and a "
    "verdict mean.\n"
    "The systems of a run take turns on the same links. Values that need other links or settings, such as another "
    "loss, "
    "come from\n"
    "runs one after the other, of which round is compared with round. Each row compares our median, and the interval "
    "of "
    "three rounds,\n"
    "with the paper. A figure whose free inputs were not varied is consistent at best. Lines without markers, and pale "
    "bars, are simulations of the same links.";

}  // namespace

std::string command_of(std::string_view id, const LabOptions& options) {
    const std::string runs = options.runs == 0 ? "" : fmt::format(" --runs {}", options.runs);
    return fmt::format("atp-lab figure {}{}{}{} --seed {}", id, options.real ? " --real" : "",
                       options.quick ? " --quick" : "", runs, options.seed);
}

std::string file_of(const Figure& figure, const LabOptions& options) {
    return (options.real ? "real-" : "") + std::string(figure.id);
}

std::string page_name(const LabOptions& options) { return options.real ? "real-figures.md" : "figures.md"; }

std::string page_of(std::span<const Drawn> drawn, const LabOptions& options, std::string_view folder,
                    std::string_view provenance) {
    std::string text =
        fmt::format("# {}\n\n{}\n\nWritten by `{}`. {}\n\n| figure | | basis | verdict |\n|---|---|---|---|\n",
                    options.real ? "Figures of the papers on real packets" : "Figures of the papers, reproduced",
                    provenance, command_of("all", options), options.real ? of_real : of_simulated);
    for (const Drawn& one : drawn) {
        text += fmt::format("| [{0}](#{0}) | {1} | {2} | {3} |\n", one.figure->id, cell(one.figure->title),
                            to_string(one.drawing.basis), to_string(one.drawing.verdict()));
    }
    for (const Drawn& one : drawn) {
        text += fmt::format("\n<a id=\"{}\"></a>\n\n{}", one.figure->id, section_of(one, options, folder));
    }
    return text;
}

tl::expected<void, std::string> write_files(const Drawn& drawn, const LabOptions& options,
                                            const std::filesystem::path& folder) {
    if (drawn.drawing.verdict() == Verdict::skipped) return {};
    if (auto made = make_folder(folder); !made) return made;
    const std::string name = file_of(*drawn.figure, options);
    if (auto csv = write_file(folder / (name + ".csv"), to_csv(points_of(drawn.drawing.charts))); !csv) return csv;
    return write_file(folder / (name + ".svg"), to_svg(drawn.figure->title, drawn.drawing.charts));
}

}  // namespace atp::figure
