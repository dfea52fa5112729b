// SPDX-License-Identifier: Apache-2.0
#include "workload/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

namespace atp::workload {
namespace {

// Builds layers as torchvision does. The numbers of parameters are those that were published.
class Layers {
  public:
    void convolution(std::string name, std::uint64_t in, std::uint64_t out, std::uint64_t kernel, std::uint64_t side,
                     bool normalised) {
        const std::uint64_t weights = kernel * kernel * in * out;
        add(std::move(name), normalised ? std::vector{weights, out, out} : std::vector{weights, out},
            2.0 * static_cast<double>(weights) * static_cast<double>(side * side));
    }
    void linear(std::string name, std::uint64_t in, std::uint64_t out) {
        add(std::move(name), {in * out, out}, 2.0 * static_cast<double>(in * out));
    }
    void add(std::string name, std::vector<std::uint64_t> tensors, double flops) {
        layers_.push_back({.name = std::move(name), .tensors = std::move(tensors), .forward_flops = flops});
    }
    [[nodiscard]] std::vector<ModelLayer> take() && { return std::move(layers_); }

  private:
    std::vector<ModelLayer> layers_;
};

constexpr std::uint64_t classes = 1000;

std::vector<ModelLayer> alexnet() {
    Layers layers;
    layers.convolution("conv1", 3, 64, 11, 55, false);
    layers.convolution("conv2", 64, 192, 5, 27, false);
    layers.convolution("conv3", 192, 384, 3, 13, false);
    layers.convolution("conv4", 384, 256, 3, 13, false);
    layers.convolution("conv5", 256, 256, 3, 13, false);
    layers.linear("fc6", 9216, 4096);
    layers.linear("fc7", 4096, 4096);
    layers.linear("fc8", 4096, classes);
    return std::move(layers).take();
}

// `groups`: convolutions in each of the five groups.
std::vector<ModelLayer> vgg(const std::array<unsigned, 5>& groups) {
    Layers layers;
    std::uint64_t in = 3;
    std::uint64_t side = 224;
    for (std::size_t group = 0; group < groups.size(); ++group, side /= 2) {
        const std::uint64_t out = std::min<std::uint64_t>(64U << group, 512);
        for (unsigned i = 0; i < groups[group]; ++i, in = out) {
            layers.convolution(fmt::format("conv{}_{}", group + 1, i + 1), in, out, 3, side, false);
        }
    }
    layers.linear("fc6", in * side * side, 4096);
    layers.linear("fc7", 4096, 4096);
    layers.linear("fc8", 4096, classes);
    return std::move(layers).take();
}

// `groups`: bottleneck blocks in each of the four groups.
std::vector<ModelLayer> resnet(const std::array<unsigned, 4>& groups) {
    constexpr std::uint64_t expansion = 4;
    Layers layers;
    layers.convolution("conv1", 3, 64, 7, 112, true);
    std::uint64_t in = 64;
    std::uint64_t side_in = 56;
    for (std::size_t group = 0; group < groups.size(); ++group) {
        const std::uint64_t width = 64U << group;
        const std::uint64_t out = width * expansion;
        const std::uint64_t side = 56U >> group;
        for (unsigned block = 0; block < groups[group]; ++block) {
            const std::string name = fmt::format("layer{}.{}", group + 1, block);
            layers.convolution(name + ".conv1", in, width, 1, side_in, true);
            layers.convolution(name + ".conv2", width, width, 3, side, true);
            layers.convolution(name + ".conv3", width, out, 1, side, true);
            if (block == 0) layers.convolution(name + ".downsample", in, out, 1, side, true);
            in = out;
            side_in = side;
        }
    }
    layers.linear("fc", in, classes);
    return std::move(layers).take();
}

// GPT-2 small, with sequences of half its context. The output layer shares the token table. The gradient of this table
// is complete at the end of the backward pass.
std::vector<ModelLayer> gpt2() {
    constexpr std::uint64_t width = 768;
    constexpr std::uint64_t context = 1024;
    constexpr std::uint64_t tokens = context / 2;
    constexpr std::uint64_t vocabulary = 50257;
    constexpr unsigned blocks = 12;
    const auto product = [](std::uint64_t weights) {
        return 2.0 * static_cast<double>(weights) * static_cast<double>(tokens);
    };
    Layers layers;
    layers.add("embedding", {vocabulary * width, context * width}, 0);
    for (unsigned block = 0; block < blocks; ++block) {
        const double attention = 4.0 * static_cast<double>(tokens * tokens * width);
        layers.add(fmt::format("h{}.attention", block),
                   {width, width, 3 * width * width, 3 * width, width * width, width},
                   product(4 * width * width) + attention);
        layers.add(fmt::format("h{}.mlp", block),
                   {width, width, 4 * width * width, 4 * width, 4 * width * width, width}, product(8 * width * width));
    }
    layers.add("norm", {width, width}, 0);
    layers.add("output", {}, product(vocabulary * width));
    return std::move(layers).take();
}

// Throughput of one GPU from SwitchML, Table 1: an eighth of the ideal throughput of eight GPUs.
constexpr double vgg16_images_per_s = 1180.0 / 8;
constexpr double resnet50_images_per_s = 1838.0 / 8;
constexpr std::string_view measured = "SwitchML, Table 1, one eighth of the ideal";

std::vector<Model> build_models() {
    const auto model = [](std::string name, std::vector<ModelLayer> layers) {
        return Model{.name = std::move(name), .sample = "image", .source = {}, .layers = std::move(layers)};
    };
    std::vector<Model> all{model("AlexNet", alexnet()),
                           model("VGG11", vgg({1, 1, 2, 2, 2})),
                           model("VGG16", vgg({2, 2, 3, 3, 3})),
                           model("VGG19", vgg({2, 2, 4, 4, 4})),
                           model("ResNet50", resnet({3, 4, 6, 3})),
                           model("ResNet101", resnet({3, 4, 23, 3})),
                           model("ResNet152", resnet({3, 8, 36, 3})),
                           model("GPT2", gpt2())};
    constexpr std::size_t vgg16 = 2;
    constexpr std::size_t resnet50 = 4;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::size_t like = i < resnet50 ? vgg16 : resnet50;
        const double known = like == vgg16 ? vgg16_images_per_s : resnet50_images_per_s;
        all[i].samples_per_s = known * all[like].forward_flops() / all[i].forward_flops();
        all[i].source = i == like ? std::string(measured)
                                  : fmt::format("the arithmetic per second of {} ({})", all[like].name, measured);
    }
    all.back().sample = "sequence";
    all.back().batch = 8;
    return all;
}

bool same_characters(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b,
                              [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

Duration nanoseconds(double count) { return Duration(static_cast<std::int64_t>(std::llround(count))); }

// Splits and joins tensors into buckets, in the order in which their gradients become ready.
class Bucketeer {
  public:
    Bucketeer(const Model& model, const Bucketing& bucketing)
        : model_(model),
          bucketing_(bucketing),
          bucket_elements_(std::max<std::uint64_t>(bucketing.bytes / sizeof(float), 1)) {
        workload_.forward.resize(model.layers.size());
    }

    Workload build() {
        for (std::size_t i = model_.layers.size(); i-- > 0;) {
            const ModelLayer& layer = model_.layers[i];
            now_ += scaled(model_.backward_time(layer));
            Workload::Stage& stage = workload_.forward[i];
            stage.compute = scaled(model_.forward_time(layer));
            if (layer.tensors.empty()) continue;
            stage.first = number_of_open();
            for (std::size_t t = layer.tensors.size(); t-- > 0;) add(layer.tensors[t]);
            stage.last = number_of_open() + (open_ == 0 ? 0 : 1);
        }
        if (open_ != 0) close();
        workload_.buckets.back().ready = now_;
        return std::move(workload_);
    }

  private:
    [[nodiscard]] std::uint32_t number_of_open() const { return static_cast<std::uint32_t>(workload_.buckets.size()); }
    [[nodiscard]] Duration scaled(Duration time) const {
        return nanoseconds(static_cast<double>(time.count()) * bucketing_.slowness / bucketing_.scale);
    }

    void add(std::uint64_t elements) {
        while (elements != 0) {
            const std::uint64_t taken = std::min(elements, bucket_elements_ - open_);
            elements -= taken;
            open_ += taken;
            if (open_ == bucket_elements_) close();
        }
    }

    void close() {
        const auto elements = static_cast<std::uint64_t>(static_cast<double>(open_) / bucketing_.scale);
        workload_.buckets.push_back({.elements = std::max(elements, bucketing_.least_elements), .ready = now_});
        open_ = 0;
    }

    const Model& model_;
    const Bucketing& bucketing_;
    std::uint64_t bucket_elements_;
    Workload workload_;
    std::uint64_t open_ = 0;  // elements of the bucket that is being filled
    Duration now_{};          // since the start of the backward pass
};

}  // namespace

std::uint64_t ModelLayer::parameters() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t tensor : tensors) sum += tensor;
    return sum;
}

std::uint64_t Model::parameters() const {
    std::uint64_t sum = 0;
    for (const ModelLayer& layer : layers) sum += layer.parameters();
    return sum;
}

double Model::forward_flops() const {
    double sum = 0;
    for (const ModelLayer& layer : layers) sum += layer.forward_flops;
    return sum;
}

Duration Model::forward_time(const ModelLayer& layer) const {
    return nanoseconds(1e9 * batch / samples_per_s * layer.forward_flops / forward_flops() / 3);
}

Duration Model::backward_time(const ModelLayer& layer) const { return 2 * forward_time(layer); }

std::span<const Model> models() {
    static const std::vector<Model> all = build_models();
    return all;
}

const Model* find_model(std::string_view name) {
    const auto found =
        std::ranges::find_if(models(), [&](const Model& model) { return same_characters(model.name, name); });
    return found == models().end() ? nullptr : &*found;
}

std::string model_names() {
    std::string names;
    for (const Model& model : models()) names += (names.empty() ? "" : ", ") + model.name;
    return names;
}

Workload workload_of(const Model& model, const Bucketing& bucketing) {
    if (!bucketing.batch) return Bucketeer(model, bucketing).build();
    Model with_batch = model;
    with_batch.batch = *bucketing.batch;
    return Bucketeer(with_batch, bucketing).build();
}

}  // namespace atp::workload
