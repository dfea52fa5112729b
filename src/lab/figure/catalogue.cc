// SPDX-License-Identifier: Apache-2.0
#include "figure/catalogue.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "figure/figures/figures.h"
#include "figure/real/real_figures.h"

namespace atp::figure {
namespace {

constexpr std::array all{
    &fig3,          &fig8,          &fig9,          &fig10,         &fig11,           &fig12,          &fig13a,
    &fig13b,        &fig13c,        &fig14,         &fig15,         &fig16,           &fig18,          &fig19,
    &fig20,         &table1,        &draft_fig7,    &draft_fig8,    &draft_fig10,     &draft_fig12,    &switchml_fig2,
    &switchml_fig4, &switchml_fig5, &switchml_fig6, &switchml_fig7, &switchml_fig8,   &switchml_fig10, &switchml_table1,
    &beyond_server, &beyond_mtu,    &beyond_probe,  &beyond_scale,  &beyond_arrivals, &beyond_restart};

constexpr std::array all_real{&real_fig3,          &real_fig8,          &real_fig9,          &real_fig10,
                              &real_fig12,         &real_fig13a,        &real_fig13b,        &real_fig13c,
                              &real_fig14,         &real_fig15,         &real_fig16,         &fig19,
                              &real_fig20,         &real_draft_fig7,    &real_draft_fig8,    &real_draft_fig10,
                              &real_draft_fig12,   &real_switchml_fig2, &real_switchml_fig4, &real_switchml_fig5,
                              &real_switchml_fig6, &real_switchml_fig7, &real_switchml_fig8, &real_switchml_table1};

// Edit distance: the letters to insert, delete or replace.
std::size_t distance_between(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = std::exchange(row[j + 1], std::min({change, row[j] + 1, row[j + 1] + 1}));
        }
    }
    return row.back();
}

constexpr std::size_t near_distance = 2;

}  // namespace

Catalogue catalogue() { return all; }

// Title, source and claim are those of the simulated figure.
Catalogue real_catalogue() {
    static const auto completed = [] {
        std::array<Figure, all_real.size()> figures;
        for (std::size_t i = 0; i < figures.size(); ++i) {
            const Figure& like = *find_figure(all_real[i]->id);
            figures[i] = *all_real[i];
            figures[i].title = like.title;
            figures[i].source = like.source;
            figures[i].claim = like.claim;
        }
        return figures;
    }();
    static const auto pointers = [] {
        std::array<const Figure*, all_real.size()> figures{};
        std::ranges::transform(completed, figures.begin(), [](const Figure& figure) { return &figure; });
        return figures;
    }();
    return pointers;
}

const Figure* find_figure(std::string_view id, Catalogue figures) {
    const auto found = std::ranges::find(figures, id, &Figure::id);
    return found == figures.end() ? nullptr : *found;
}

// The ids that start with `text`. If there are none, the ids that contain it or have a similar spelling.
std::vector<std::string_view> ids_near(std::string_view text, Catalogue figures) {
    std::vector<std::string_view> beginning;
    std::vector<std::string_view> similar;
    for (const Figure* figure : figures) {
        const bool part = figure->id.find(text) != std::string_view::npos;
        if (figure->id.starts_with(text)) beginning.push_back(figure->id);
        if (part || distance_between(figure->id, text) <= near_distance) similar.push_back(figure->id);
    }
    return beginning.empty() ? similar : beginning;
}

}  // namespace atp::figure
