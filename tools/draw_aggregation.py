#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the traffic on the links towards the server of simulated networks, from the output of `atp-lab simulate
--json`.

usage: draw_aggregation.py PICTURE.dot TITLE=RESULT.json ...

Prints the trees as text, and writes them side by side as one graph for Graphviz. All trees of a picture have one scale.
"""

import json
import sys

BAR_COLUMNS = 40
WIDEST_LINE_POINTS = 24.0


class Run:
    """One simulated run, as a tree with the first job's server as its root."""

    def __init__(self, title, path):
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        self.title = title
        self.job = result["jobs"][0]
        self.verified = result["verified"]
        self.bytes_over = {(link["from"], link["to"]): link["bytes"] for link in result["links"]}
        self.root = next(end for _, end in self.bytes_over if end.startswith("p"))
        self.switches = {switch["name"] for switch in result["switches"]}
        self.children = self._children_of(self.root, None)

    def _children_of(self, node, parent):
        """Every node below `node`, by parent. Links lead up and down, so the parent is the neighbour to leave out."""
        below = [start for start, end in self.bytes_over if end == node and start != parent]
        children = {node: below}
        for child in below:
            children.update(self._children_of(child, node))
        return children

    def links_up(self):
        return [
            (child, parent, self.bytes_over[child, parent])
            for parent, children in self.children.items()
            for child in children
        ]

    def caption(self):
        into_server = sum(size for _, parent, size in self.links_up() if parent == self.root)
        goodput = self.job["goodput_bits_per_s"] / 1e9
        return (
            f"{self.title}: {self.job['time_ms']:.2f} ms, {goodput:.1f} Gbit/s per worker, "
            f"{as_text(into_server)} into the server"
        )


def as_text(size):
    return f"{size / 1e6:.1f} MB"


def role(run, node):
    if node == run.root:
        return "server"
    return f"switch {node}" if node in run.switches else f"worker {node}"


def print_tree(run, largest, node=None, indent=""):
    node = node or run.root
    children = run.children[node]
    for child in children:
        last = child == children[-1]
        size = run.bytes_over[child, node]
        name = f"{indent}{'└─ ' if last else '├─ '}{role(run, child)}"
        bar = "█" * max(1, round(BAR_COLUMNS * size / largest))
        print(f"{name:<24}{bar} {as_text(size)}")
        print_tree(run, largest, child, indent + ("   " if last else "│  "))


def dot_cluster(number, run, largest):
    def name(node):
        return f'"{number}.{node}"'

    lines = [f"subgraph cluster_{number} {{ margin=16;", f'label="{run.caption()}";']
    for node in run.children:
        fill = "#ffd166" if node == run.root else "#8ecae6" if node in run.switches else "#e9ecef"
        lines.append(f'{name(node)} [label="{role(run, node)}", fillcolor="{fill}"];')
    for child, parent, size in run.links_up():
        width = max(1.0, WIDEST_LINE_POINTS * size / largest)
        lines.append(f'{name(parent)} -> {name(child)} [penwidth={width:.1f}, label="  {as_text(size)}"];')
    return lines + ["}"]


def write_dot(path, runs, largest):
    lines = [
        "digraph aggregation {",
        "margin=0.3; nodesep=0.3; ranksep=0.9;",
        'graph [fontname="sans", fontsize=16, labelloc=t, color="#adb5bd"];',
        'node [fontname="sans", shape=box, style="filled,rounded", color="#495057"];',
        'edge [fontname="sans", color="#d6622d", arrowhead=none];',
    ]
    for number, run in enumerate(runs):
        lines += dot_cluster(number, run, largest)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines + ["}", ""]))


def main(arguments):
    if len(arguments) < 2 or not all("=" in argument for argument in arguments[1:]):
        sys.exit(__doc__)
    runs = [Run(*argument.split("=", 1)) for argument in arguments[1:]]
    largest = max(size for run in runs for _, _, size in run.links_up())
    for run in runs:
        print(f"\n{run.caption()}\n\nserver")
        print_tree(run, largest)
    write_dot(arguments[0], runs, largest)
    if not all(run.verified for run in runs):
        sys.exit("tools/draw_aggregation.py: the simulator reports a wrong sum")


main(sys.argv[1:])
