# SPDX-License-Identifier: Apache-2.0
"""Models that ranks train without PyTorch: they sum a model's gradients, and sleep while it computes."""

from dataclasses import dataclass
from typing import Optional

from workloads import tables


@dataclass(frozen=True)
class LabModel:
    """What the ranks of one job train. `batch`: samples of a rank in a step. `scale` divides parameters and times;
    `slowness` multiplies the times, for links slower than the testbed's."""

    name: str
    batch: Optional[int]
    scale: float
    slowness: float
    table: tables.Table

    @property
    def bytes(self):
        """Of the gradients. Each bucket is rounded to whole elements, so the ranks' may differ by a thousandth."""
        return 4 * int(self.table.parameters / self.scale)

    @property
    def compute_seconds(self):
        batches = self.batch / self.table.batch if self.batch else 1
        return self.table.compute_seconds * batches * self.slowness / self.scale

    def flags(self):
        """As `atp-lab bench` and bench_gloo have them."""
        batch = ["--batch", str(self.batch)] if self.batch else []
        return ["--model", self.name, *batch, "--scale", f"{self.scale:g}", "--slowness", f"{self.slowness:g}"]

    def __str__(self):
        return (
            f"{self.name} with {self.bytes / 1e6:.3g} MB of gradients and {self.compute_seconds:.3g} s of computation"
        )


def of_jobs(choices, programs):
    """`choices` holds the flags of each job. `programs` is the folder of `atp-lab`, which prints the tables."""
    return tuple(
        LabModel(each.model, each.batch, each.model_scale, each.slowness, tables.load(each.model, programs))
        for each in choices
    )
