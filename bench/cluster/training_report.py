# SPDX-License-Identifier: Apache-2.0
"""Formats the results of the turns of a training as a table and as JSON."""

import json
import statistics

import faults
from report import megabytes, or_dash, share_in_network


class TrainingReport:
    """All results of one run. `turns` maps the name of a system to the list of its turns."""

    def __init__(self, setting, turns):
        self._setting = setting
        self._work = setting.work
        self._turns = turns
        self._table = self._work.workload.table

    def as_json(self):
        workload = self._work.workload
        return json.dumps(
            {
                **self._setting.as_dict(),
                "workload": workload.name,
                "parallel": workload.parallel,
                "model": self._table.model,
                "source": self._table.source,
                "share": workload.share,
                "compute": workload.compute,
                "recorded_seconds_of_a_step": self._recorded_seconds(),
                "link_seconds_of_a_step": self._link_seconds(),
                "rounds": len(self._rounds()),
                "systems": {name: self._system(name) for name in self._turns},
            },
            indent=2,
        )

    def as_text(self):
        header = (
            f"{'system':<8} {'steps/s':>9} {'min .. max':>16} {'x gloo':>7} {'by round':>13} {'in network':>10} "
            f"{'CPU s/step':>10} {'sent MB':>8} {'got MB':>8} {'dropped':>8}"
        )
        rows = [*map(self._row, self._turns), "", *self._setting.describe_faults(self._turns)]
        return "\n".join([self._headline(), self._model_line(), "", header, *rows, _LEGEND])

    def _headline(self):
        return (
            f"{self._setting.describe_links()}: {self._setting.describe_jobs()}{len(self._rounds())} rounds of "
            f"{self._work.operations} steps"
        )

    def _model_line(self):
        workload = self._work.workload
        line = (
            f"{self._table.model} by {workload.parallel}, {workload.share:.4g} of its parameters: "
            f"{self._work.bytes / 1e6:.1f} MB of "
            f"gradients, {self._link_seconds():.3f} s on a link of {self._table.link_bps / 1e6:g} Mbit/s"
        )
        if workload.compute == "real":
            return line + "; passes are computed"
        if workload.compute == "none":
            return line + "; passes take no time"
        return line + f"; passes take {self._recorded_seconds():.3f} s ({self._table.source})"

    def _link_seconds(self):
        return self._table.gradient_bytes * 8 / self._table.link_bps

    def _recorded_seconds(self):
        return None if self._work.workload.compute == "real" else self._table.compute_seconds

    def _rounds(self):
        return list(zip(*self._turns.values()))

    def _rates(self, name):
        return [turn.operations_per_second() for turn in self._turns[name]]

    def _system(self, name):
        turns, rates = self._turns[name], self._rates(name)
        counters = [switch for turn in turns for switch in turn.counters]
        return {
            "steps_per_second": statistics.median(rates),
            "min_steps_per_second": min(rates),
            "max_steps_per_second": max(rates),
            **self._ratio_to_gloo(rates),
            "share_in_network": share_in_network(counters),
            "cpu_seconds_of_a_step": statistics.median(map(self._cpu_seconds_of_a_step, turns)),
            "traffic_of_a_step": self._setting.traffic_of_an_operation(turns),
            "faults": faults.sum_of(turn.faults for turn in turns),
            "seconds": [second for turn in turns for seconds in turn.jobs_seconds for second in seconds],
            "series": turns[-1].series,
        }

    def _ratio_to_gloo(self, rates):
        if "gloo" not in self._turns:
            return {"ratio_to_gloo": None, "ratios_by_round": None}
        gloo = self._rates("gloo")
        return {
            "ratio_to_gloo": statistics.median(rates) / statistics.median(gloo),
            "ratios_by_round": [mine / glooes for mine, glooes in zip(rates, gloo)],
        }

    def _cpu_seconds_of_a_step(self, turn):
        """Processor time per step. The time of the ranks covers measured steps; the time of the switches covers all
        steps."""
        ranks = sum(job["ranks_cpu_seconds"] for job in turn.jobs) / (self._work.operations * self._work.jobs)
        return ranks + turn.switches_cpu_seconds / self._setting.operations_of_a_turn()

    def _row(self, name):
        system = self._system(name)
        spread = f"{system['min_steps_per_second']:.3f} .. {system['max_steps_per_second']:.3f}"
        by_round = system["ratios_by_round"]
        ratios = f"{min(by_round):.2f} .. {max(by_round):.2f}" if by_round else "-"
        traffic = system["traffic_of_a_step"]
        return (
            f"{name:<8} {system['steps_per_second']:>9.3f} {spread:>16} "
            f"{or_dash(system['ratio_to_gloo'], '.2f'):>7} {ratios:>13} "
            f"{or_dash(system['share_in_network'], '.1%'):>10} {system['cpu_seconds_of_a_step']:>10.3f} "
            f"{megabytes(traffic, 'host_sent_bytes'):>8} {megabytes(traffic, 'host_received_bytes'):>8} "
            f"{or_dash(traffic and traffic['dropped_packets'], '.1f'):>8}"
        )


_LEGEND = """\
steps/s: measured steps of a turn divided by their time, added over all jobs; median of the rounds.
in network: share of the gradient packets at the switches that the switches added.
CPU s/step: user and system time of all ranks and switch daemons.
sent, got: MB over a host's link per step, including the first broadcast of the model. dropped: packets that all links
dropped per step."""
