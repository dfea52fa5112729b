// SPDX-License-Identifier: Apache-2.0
// The effect of integers on the accuracy of training. A separate program runs real trainings.
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "figure/figures/figures.h"

namespace atp::figure {
namespace {

using Json = nlohmann::json;

constexpr const char* program = "bench/accuracy/run";
constexpr double workers = 4;

constexpr Input inputs_of_trainings[] = {
    {"model and data", Origin::measured, "small ones of examples/, not the papers'"},
    {"scale of 1e8", Origin::paper, "ATP, section 5.3.1"},
};
Json trained(const Lab& lab, const char* id) {
    if (!std::filesystem::exists(program)) {
        throw Lacking(std::string(program) + " not found: run this command in the project's folder");
    }
    std::vector<std::string> command{program, "--json", "--only", id};
    if (lab.quick()) command.emplace_back("--quick");
    return Json::parse(lab.output_of(command)).at(0);
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
    const Json figure = trained(lab, id);
    const Json& found = figure.at("found");
    const double reference = found.at("float32").at("final");
    for (const auto& [form, what] : found.items()) {
        if (form == "float32") continue;
        const Json& error = what.at("times_floats_error");
        Check steps =
            equal(1, form + ": steps to the target, relative to floats, with one standard error over the seeds",
                  number_of(what.at("times_floats")));
        if (!error.is_null()) {
            steps.low -= error.get<double>();
            steps.high += error.get<double>();
        }
        drawing.checks.push_back(std::move(steps));
        drawing.checks.push_back(
            equal(0, form + ": its final score minus that of floats", what.at("final").get<double>() - reference));
    }
    drawing.charts = {chart_of(figure, {.label = "step", .from = 0})};
    return drawing;
}

Drawing draw_fig11(const Lab& lab) { return draw_steps(lab, "fig11"); }
Drawing draw_fig18(const Lab& lab) { return draw_steps(lab, "fig18"); }

Drawing draw_switchml_fig10(const Lab& lab) {
    Drawing drawing;
    const Json figure = trained(lab, "switchml-fig10");
    const LineChart chart = chart_of(figure, {.label = "scaling factor", .logarithmic = true});
    const Json& decades = figure.at("found").at("switchml_flat_decades");
    const double reference = chart.lines.front().y.front();
    const Line& switchml = chart.lines.at(1);
    // A training that diverges has no score.
    const double last_score = std::isnan(switchml.y.back()) ? 0 : switchml.y.back();
    const double largest = figure.at("found").at("largest_gradient");
    const double bound = (0x1p31 - workers) / (workers * largest);
    drawing.checks = {
        number(bound, by_magnitude,
               "largest scale with the accuracy of floats (stated: the largest gradient near 2^31)",
               std::pow(10, number_of(decades.empty() ? Json() : decades.at(1)))),
        order("accuracy of floats relative to the smallest scale", std::array{reference, switchml.y.front()},
              1 + equality),
        order("accuracy of floats relative to the largest scale", std::array{reference, last_score}, 1 + equality),
        notified("smallest scale with the accuracy of floats",
                 std::pow(10, number_of(decades.empty() ? Json() : decades.at(0)))),
        notified("orders of magnitude between both",
                 decades.empty() ? 0 : decades.at(1).get<double>() - decades.at(0).get<double>())};
    drawing.charts = {chart};
    return drawing;
}

constexpr std::string_view setup =
    "Four workers train a small model of examples/, and the shipped state machines sum their gradients.";

constexpr std::string_view setup_of_steps =
    "Four workers train a small model of examples/, and the shipped state machines sum their gradients. This figure "
    "compares numbers of steps, not times; fig8 compares the time of a step. Each curve is a mean over the seeds and "
    "over five neighbouring scores. The target is an accuracy 0.05 below, or a loss 5 % above, that of floats.";

}  // namespace

const Figure fig11{
    .id = "fig11",
    .title = "Accuracy over steps",
    .source = "ATP, section 5.3.1",
    .claim =
        "ATP spends the same number of epochs to achieve the same top-5 accuracy as BytePS NtoN RDMA for all the "
        "models. "
        "It reaches 75% with VGG16 1.25X faster, and 93% with ResNet50 1.02X faster.",
    .setup = setup_of_steps,
    .inputs = inputs_of_trainings,
    .once = true,
    .draw = draw_fig11,
};

const Figure fig18{
    .id = "fig18",
    .title = "Accuracy over steps, another model",
    .source = "ATP, appendix D.3",
    .claim =
        "The speed up of time to accuracy is 1.01X for ResNet101, 1.2X for VGG19 and 2.39X for AlexNet, with the same "
        "number of epochs.",
    .setup = setup_of_steps,
    .inputs = inputs_of_trainings,
    .once = true,
    .draw = draw_fig18,
};

const Figure switchml_fig10{
    .id = "switchml-fig10",
    .title = "Accuracy over the scaling factor",
    .source = "SwitchML, appendix C",
    .claim =
        "Quantization factors that bring the maximum gradient (29.24) close to the maximum 32-bit integer value "
        "supported "
        "accurate training, while smaller and larger ones caused training to diverge.",
    .setup = setup,
    .inputs = inputs_of_trainings,
    .once = true,
    .draw = draw_switchml_fig10,
};

}  // namespace atp::figure
