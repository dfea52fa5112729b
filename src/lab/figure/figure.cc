// SPDX-License-Identifier: Apache-2.0
#include "figure/figure.h"

namespace atp::figure {

tl::expected<Drawing, Failure> draw(const Figure& figure, const LabOptions& options) {
    try {
        return figure.draw(Lab(options));
    } catch (const Interrupted&) {
        return tl::unexpected(Failure{.text = "interrupted", .interrupted = true});
    } catch (const Failed& failed) {
        return tl::unexpected(Failure{.text = failed.what()});
    }
}

}  // namespace atp::figure
