// SPDX-License-Identifier: Apache-2.0
// The effect of integers on the accuracy of training. A separate program runs real trainings.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "figure/figures/figures.h"

namespace atp::figure {
namespace {

using Json = nlohmann::json;

constexpr const char* program = "bench/accuracy/run";
// Two trainings that differ only in the order of their additions reach scores that differ by this much.
constexpr double as_accurate = 0.03;

// The output of the program, or the reason why this machine cannot run it.
tl::expected<Json, std::string> trained(const Lab& lab, const char* id) {
    if (!std::filesystem::exists(program)) {
        return tl::unexpected(std::string(program) + " not found: run this command in the project's folder");
    }
    std::vector<std::string> command{program, "--json", "--only", id};
    if (lab.quick()) command.emplace_back("--quick");
    try {
        return Json::parse(lab.output_of(command)).at(0);
    } catch (const Lacking& lacking) {
        return tl::unexpected(std::string(lacking.what()));
    }
}

// null: no value, or no finite one.
double number_of(const Json& json) { return json.is_null() ? std::nan("") : json.get<double>(); }

LineChart chart_of(const Json& figure, const Axis& x) {
    LineChart chart{.title = figure.at("subject"), .x = x, .y = {.label = figure.at("y")}};
    for (const Json& series : figure.at("series")) {
        Line line{.name = series.at("name")};
        for (const Json& point : series.at("points")) {
            line.x.push_back(point.at(0));
            line.y.push_back(number_of(point.at(1)));
        }
        chart.lines.push_back(std::move(line));
    }
    return chart;
}

Drawing draw_steps(const Lab& lab, const char* id) {
    Drawing drawing;
    const auto figure = trained(lab, id);
    if (!figure) {
        drawing.skipped = figure.error();
        return drawing;
    }
    const Json& found = figure->at("found");
    const double reference = found.at("float32").at("final");
    for (const auto& [form, what] : found.items()) {
        if (form == "float32") continue;
        drawing.checks.push_back(
            between(0.8, 1.25, form + ": steps to the target, relative to floats", number_of(what.at("times_floats"))));
        const Json& error = what.at("times_floats_error");
        if (!error.is_null())
            drawing.checks.push_back(notified(form + ": standard error of this ratio over the seeds", error));
        drawing.checks.push_back(at_most(as_accurate, form + ": difference between its final score and that of floats",
                                         std::abs(what.at("final").get<double>() - reference)));
    }
    drawing.charts = {chart_of(*figure, {.label = "step", .from = 0})};
    return drawing;
}

Drawing draw_fig11(const Lab& lab) { return draw_steps(lab, "fig11"); }
Drawing draw_fig18(const Lab& lab) { return draw_steps(lab, "fig18"); }

Drawing draw_switchml_fig10(const Lab& lab) {
    Drawing drawing;
    const auto figure = trained(lab, "switchml-fig10");
    if (!figure) {
        drawing.skipped = figure.error();
        return drawing;
    }
    const LineChart chart = chart_of(*figure, {.label = "scaling factor", .logarithmic = true});
    const Json& decades = figure->at("found").at("switchml_flat_decades");
    const double reference = chart.lines.front().y.front();
    const Line& switchml = chart.lines.at(1);
    drawing.checks = {at_least(4, "orders of magnitude of the scale over which SwitchML is as accurate as floats",
                               decades.at(1).get<double>() - decades.at(0).get<double>()),
                      at_least(0.1, "loss of accuracy with the smallest scale", reference - switchml.y.front()),
                      notified("loss of accuracy with the largest scale, unless the training diverges",
                               reference - switchml.y.back())};
    drawing.charts = {chart};
    return drawing;
}

constexpr std::string_view setup =
    "Four workers train a small model of examples/, and the shipped state machines sum their gradients.";

constexpr std::string_view setup_of_steps =
    "Four workers train a small model of examples/, and the shipped state machines sum their gradients. This figure "
    "compares numbers of steps; fig8 and fig12 compare the time of a step. Each curve is a mean over the seeds and "
    "over five neighbouring scores. The target is an accuracy 0.05 below, or a loss 5 % above, that of floats.";

}  // namespace

const Figure fig11{
    .id = "fig11",
    .title = "Accuracy over steps",
    .source = "ATP, section 5.3.1",
    .claim =
        "Training with scaled integers needs as many steps to an accuracy as training with floats. Time to accuracy "
        "is therefore shorter by the same factor as the time of a step: 1.25 for VGG16 and 1.02 for ResNet50.",
    .setup = setup_of_steps,
    .draw = draw_fig11,
};

const Figure fig18{
    .id = "fig18",
    .title = "Accuracy over steps, another model",
    .source = "ATP, appendix D.3",
    .claim =
        "The same holds for other models: time to accuracy is shorter by a factor of 1.2 for VGG19 and 2.39 for "
        "AlexNet.",
    .setup = setup_of_steps,
    .draw = draw_fig18,
};

const Figure switchml_fig10{
    .id = "switchml-fig10",
    .title = "Accuracy over the scaling factor",
    .source = "SwitchML, appendix C",
    .claim =
        "Accuracy equals that of floats over orders of magnitude of the scaling factor. Far smaller factors round "
        "all values to zero; far larger factors overflow.",
    .setup = setup,
    .draw = draw_switchml_fig10,
};

}  // namespace atp::figure
