// SPDX-License-Identifier: Apache-2.0
#include "apps/atp-lab/models_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/common/flags.h"
#include "workload/models.h"

namespace atp::apps {
namespace {

using Json = nlohmann::ordered_json;

struct ModelsOptions {
    std::string name;
    bool json = false;
};

Json to_json(const workload::Model& model) {
    Json layers = Json::array();
    for (const workload::ModelLayer& layer : model.layers) {
        layers.push_back(Json{{"name", layer.name},
                              {"tensors", layer.tensors},
                              {"forward_flops", layer.forward_flops},
                              {"forward_us", to_microseconds(model.forward_time(layer))},
                              {"backward_us", to_microseconds(model.backward_time(layer))}});
    }
    return Json{{"name", model.name},         {"parameters", model.parameters()},     {"sample", model.sample},
                {"batch", model.batch},       {"samples_per_s", model.samples_per_s}, {"source", model.source},
                {"layers", std::move(layers)}};
}

std::string to_text(const workload::Model& model) {
    return fmt::format("{:>10} {:>12} {:>7} {:>6} {:>10.1f} {:>9.1f} ms  {}\n", model.name, model.parameters(),
                       model.layers.size(), model.batch, model.samples_per_s, 1e3 * model.batch / model.samples_per_s,
                       model.source);
}

std::string layers_text(const workload::Model& model) {
    std::string text = fmt::format("\n{:>18} {:>12} {:>14} {:>12} {:>12}\n", "layer", "parameters", "forward flops",
                                   "forward", "backward");
    for (const workload::ModelLayer& layer : model.layers) {
        text += fmt::format("{:>18} {:>12} {:>14.4g} {:>9.1f} us {:>9.1f} us\n", layer.name, layer.parameters(),
                            layer.forward_flops, to_microseconds(model.forward_time(layer)),
                            to_microseconds(model.backward_time(layer)));
    }
    return text;
}

int run_models(const ModelsOptions& options) {
    const workload::Model* requested = workload::find_model(options.name);
    if (requested == nullptr && !options.name.empty()) {
        fmt::print(stderr, "atp-lab models: model {} is unknown; use {}\n", options.name, workload::model_names());
        return exit_misused;
    }
    const std::span<const workload::Model> shown = requested == nullptr ? workload::models() : std::span(requested, 1);
    if (options.json) {
        Json all = Json::array();
        for (const workload::Model& model : shown) all.push_back(to_json(model));
        fmt::print("{}\n", all.dump(2));
        return exit_passed;
    }
    fmt::print("{:>10} {:>12} {:>7} {:>6} {:>10} {:>12}  {}\n", "model", "parameters", "layers", "batch", "samples/s",
               "iteration", "throughput of one worker from");
    for (const workload::Model& model : shown) fmt::print("{}", to_text(model));
    if (requested != nullptr) fmt::print("{}", layers_text(*requested));
    return exit_passed;
}

}  // namespace

std::function<int()> register_models(CLI::App& program) {
    auto options = std::make_shared<ModelsOptions>();
    Command& command = Command::add(program, "models", "Show the neural networks of `atp-lab simulate --model`");
    const CLI::Option* const name = command.add_option("name", options->name)->type_name("NAME");
    command.describe(name,
                     flag_text("Show one model with its layers [all models, without layers]", workload::model_names()));
    Flags flags(command, "Output");
    flags.flag("--json", options->json,
               "Print a JSON array of models with all layers from the input: parameters of each tensor, times of a "
               "batch");
    command.add_example("atp-lab models VGG16", "List the layers of VGG16 with their parameters and times.");
    command.set_exit({{exit_passed, "shown"}, {exit_misused, "bad arguments"}});
    return [options] { return run_models(*options); };
}

}  // namespace atp::apps
