# SPDX-License-Identifier: Apache-2.0
"""Numbers of the command line. Each function converts a word to a value, or raises what argparse prints."""

import argparse
import re

SIZE_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
RATE_UNITS = {"": 1, "bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}


def magnitude(text):
    if not 0 < _number(text) < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return float(text)


def ranks_of_host(text):
    if not 1 <= count(text) <= 63:
        raise argparse.ArgumentTypeError(f"{text} is outside 1 to 63 ranks")
    return int(text)


def leaves(text):
    counts = text.split(",")
    if len(set(counts)) != len(counts) or not all(each.isdecimal() and len(each) == 1 for each in counts):
        raise argparse.ArgumentTypeError(f"'{text}' is not accepted: write numbers from 0 to 9, each once: 0,2,4")
    return [int(each) for each in counts]


def host_numbers(text):
    numbers = text.split(",")
    if len(set(numbers)) != len(numbers) or not all(each.isdecimal() for each in numbers):
        raise argparse.ArgumentTypeError(f"'{text}' is not accepted: write numbers, each once: 0,1,4")
    return [int(each) for each in numbers]


def scale(text):
    if not 1 <= _number(text) <= 1e9:
        raise argparse.ArgumentTypeError(f"{text} is outside 1 to 1e9")
    return float(text)


def seed(text):
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"'{text}' is not an integer from 0 to 4294967295")
    return int(text)


def _quantity(text, units, example):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]*)", text.lower())
    if not match or match[2] not in units or float(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not accepted: write a quantity above 0, such as {example}")
    return round(float(match[1]) * units[match[2]])


def size(text):
    return _quantity(text, SIZE_UNITS, "25MB or 64KiB")


def rate(text):
    return _quantity(text, RATE_UNITS, "500mbit or 1gbit")


def count_or_none(text):
    if not text.isdecimal() or int(text) > 10_000:
        raise argparse.ArgumentTypeError(f"'{text}' is not an integer from 0 to 10000")
    return int(text)


def count(text):
    if count_or_none(text) == 0:
        raise argparse.ArgumentTypeError("0 is below the minimum of 1")
    return int(text)


def interval(text):
    """Seconds between samples. Reading a link's counters takes milliseconds, so shorter ones are not accepted."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s)", text)
    found = float(match[1]) / (1000 if match[2] == "ms" else 1) if match else 0
    if not 0.01 <= found <= 60:
        raise argparse.ArgumentTypeError(f"'{text}' is not accepted: write 10ms to 60s")
    return found


def _number(text):
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from error


def seconds(text):
    if not 1 <= _number(text) <= 86_400:
        raise argparse.ArgumentTypeError(f"{text} is outside 1 to 86400 seconds")
    return float(text)


def share(text):
    share = _number(text[:-1]) / 100 if text.endswith("%") else _number(text)
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"{text} is outside the accepted shares, from 0 to below 1")
    return share


def model_share(text):
    fraction = re.fullmatch(r"1/(\d+)", text)
    if fraction and int(fraction[1]) > 0:
        return 1 / int(fraction[1])
    share = _number(text[:-1]) / 100 if text.endswith("%") else _number(text)
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text} is outside the accepted shares, above 0 and at most 1")
    return share
