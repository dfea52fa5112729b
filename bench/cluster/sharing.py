# SPDX-License-Identifier: Apache-2.0
"""Evaluates samples of a link that a job and a TCP flow use, and draws the shares of the job and the flow over time."""

import statistics
import threading
import time
from dataclasses import dataclass

import picture

SAMPLE_SECONDS = 0.1
# Share of the line. If the other direction carries more than this, it is traffic of the job; less may be
# acknowledgements of TCP.
BACK_SHARE = 0.05


@dataclass(frozen=True)
class Sample:
    """Bytes on the line since the start."""

    at: float  # seconds since the start
    job_bytes: int  # of the job
    flow_bytes: int  # of the flow
    other_bytes: int  # all bytes in the other direction: of the job, and acknowledgements of TCP


@dataclass(frozen=True)
class Span:
    """A time interval."""

    begin: float
    end: float


@dataclass(frozen=True)
class Job:
    """A turn of the job. `over` is a time after the end of its last operation."""

    turn: object
    over: float

    @property
    def seconds(self):
        [seconds] = self.turn.jobs_seconds
        return seconds


class Meter:
    """Takes samples in a separate thread while a `with` block runs. The flow is the traffic to the host `other`, or
    from it if it goes inwards, which counts what the worker's link drops; the job is the rest of the bytes on this link
    in this direction. Without `other`, all is of the job. Read `samples` after the block."""

    def __init__(self, built, worker, other=None, inwards=False, seconds=SAMPLE_SECONDS):
        self.samples = []
        self._seconds = seconds
        self._network = built
        self._worker = worker
        self._other = other
        self._inwards = inwards
        self._begin = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def now(self):
        return time.monotonic() - self._begin

    def _run(self):
        while not self._stop.wait(self._seconds):
            up, down = self._network.up_bytes, self._network.down_bytes
            line, back = (down, up) if self._inwards else (up, down)
            flow_bytes = back(self._other) if self._other else 0
            sample = (line(self._worker) - flow_bytes, flow_bytes, back(self._worker))
            self.samples.append(Sample(self.now(), *sample))


class Line:
    """A link of a given rate, and its samples."""

    def __init__(self, rate_bps, samples):
        self.rate_bps = rate_bps
        self._samples = samples

    def shares(self, span):
        """Shares of the line in an interval: (share of the job, share of the flow)."""
        inside = [sample for sample in self._samples if span.begin <= sample.at <= span.end]
        if len(inside) < 2:
            return 0.0, 0.0
        return self._shares_between(inside[0], inside[-1])

    def measured_span(self, job):
        """The interval of the measured operations. It ends with the last traffic back before `job.over`."""
        pairs = zip(self._samples, self._samples[1:])
        came = [
            after.at
            for before, after in pairs
            if after.other_bytes - before.other_bytes > BACK_SHARE * self._line_bytes(before, after)
        ]
        end = max((at for at in came if at <= job.over), default=job.over)
        return Span(end - sum(job.seconds), end)

    def series(self):
        """Both shares over time, as points (seconds, share)."""
        pairs = list(zip(self._samples, self._samples[1:]))
        shares = [(after.at, *self._shares_between(before, after)) for before, after in pairs]
        return {
            "job": [(at, job) for at, job, _ in shares],
            "TCP": [(at, flow) for at, _, flow in shares],
        }

    def _shares_between(self, before, after):
        line_bytes = self._line_bytes(before, after)
        return (
            (after.job_bytes - before.job_bytes) / line_bytes,
            (after.flow_bytes - before.flow_bytes) / line_bytes,
        )

    def _line_bytes(self, before, after):
        return (after.at - before.at) * self.rate_bps / 8


class Result:
    """A job alone, a flow alone, and both together."""

    def __init__(self, job, switch, line, alone, flow_alone, together):
        self._job = job
        self._switch = switch
        self._line = line
        self._alone = alone
        self._flow_alone = flow_alone
        self._together = together

    def as_dict(self):
        together = self._line.measured_span(self._together)
        job, flow = self._line.shares(together)
        return {
            "job": self._job,
            "switch": self._switch,
            "rate_bps": self._line.rate_bps,
            "job_share_alone": self._line.shares(self._line.measured_span(self._alone))[0],
            "flow_share_alone": self._line.shares(self._flow_alone)[1],
            "job_share": job,
            "flow_share": flow,
            "sum": job + flow,
            "job_speed": statistics.median(self._alone.seconds) / statistics.median(self._together.seconds),
            "seconds_alone": self._alone.seconds,
            "seconds": self._together.seconds,
            "together": [together.begin, together.end],
            "series": self._line.series(),
        }

    def as_text(self):
        found = self.as_dict()
        return (
            f"shares of a link of {self._line.rate_bps / 1e6:g} Mbit/s: {self._job} alone "
            f"{found['job_share_alone']:.2f}, TCP alone {found['flow_share_alone']:.2f}; together "
            f"{found['job_share']:.2f} and {found['flow_share']:.2f}, sum {found['sum']:.2f}; speed of the job beside "
            f"TCP {found['job_speed']:.2f} of its speed alone"
        )

    def picture(self):
        title = f"{self._job} and TCP on a worker's link of {self._line.rate_bps / 1e6:g} Mbit/s"
        return picture.lines(title, "seconds", "share of the line", self._line.series())
