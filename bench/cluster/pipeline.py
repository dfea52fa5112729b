# SPDX-License-Identifier: Apache-2.0
"""The tools of the switch in P4: its compiler, and the reference model BMv2 that runs it."""

import os
import shutil
import subprocess

import network

COMPILER = "p4c-bm2-ss"
MODEL = "simple_switch"
TOOLS = (COMPILER, MODEL)
FOLDERS = "ATP_P4_TOOLS"
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "p4")
PROGRAM = "atp.v1model.p4"  # the whole decision in one pass
PROGRAM_OF_PASSES = "pipeline.v1model.p4"  # the registers and passes of a pipeline
THRIFT_PORT = 9090
CONTROL_PORT = 64  # to which the program copies control messages
# On a busy machine, a JOIN waits in the model behind other packets for longer than the usual hold time.
HOLD = ("--hold", "15s")


def find(tool):
    """The path of a tool on PATH or in the folders of ATP_P4_TOOLS. Raises Unavailable if it is missing."""
    folders = (os.environ.get(FOLDERS, ""), os.environ.get("PATH", ""))
    found = shutil.which(tool, path=os.pathsep.join(folders))
    if not found:
        raise network.Unavailable(f"`{tool}` is neither on PATH nor in {FOLDERS}: see docs/develop/p4.md")
    return found


def compiled(folder, program, lanes, aggregators):
    """Compiles a program of the switch into the folder. Returns the path of the result."""
    target = os.path.join(folder, program.replace(".p4", ".json"))
    pairs = (lanes + 1) // 2
    options = [f"-DATP_LANES={lanes}", f"-DATP_PAIRS={pairs}", f"-DATP_AGGREGATORS={aggregators}", "--Wdisable=unused"]
    words = [find(COMPILER), *options, os.path.join(SOURCES, program), "-o", target]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise network.Broken(f"the switch in P4 does not compile: {done.stderr.strip()}")
    return target


def model_command(program, ports):
    """Command of the model with a compiled program. It gives the devices `ports` the numbers from 0."""
    numbered = [*enumerate(ports), (CONTROL_PORT, network.MODEL_DEVICE)]
    interfaces = [word for number, device in numbered for word in ("-i", f"{number}@{device}")]
    return [find(MODEL), "--thrift-port", str(THRIFT_PORT), *interfaces, program]


def agent_flags(level):
    """Flags of `atp switch` that make it the agent beside the model."""
    return ["--p4", f"127.0.0.1:{THRIFT_PORT}", "--p4-control", network.AGENT_DEVICE, "--level", str(level)]
