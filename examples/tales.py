# SPDX-License-Identifier: Apache-2.0
"""A text to train with: short tales about a network, made from a seed. The same seed gives the same text everywhere."""

from __future__ import annotations

import random

# An entry of a list is chosen at random. {name} is replaced by an entry of the list with that name.
PARTS = {
    "tale": [
        "{opening} {event} {event} {closing}\n\n",
        "{opening} {event} {event} {event} {closing}\n\n",
        '{opening} {event} "{speech}," said the {who}. {event} {closing}\n\n',
        '{opening} "{question}?" asked the {who}. "{speech}," said the {who}. {event} {closing}\n\n',
    ],
    "opening": [
        "At {hour}, the {adjective} {who} woke up.",
        "Once there was a {adjective} {who} in a {place}.",
        "It was a {adjective} {time} in the {place}.",
        "Nobody in the {place} had slept since {hour}.",
        "{many} packets left the {place} at {hour}.",
    ],
    "event": [
        "The {who} sent {many} packets to the {who}, and {few} of them were lost.",
        "A switch added the numbers of {many} workers while the {who} waited.",
        "When the {who} asked again, the switch answered with a sum.",
        "The {adjective} {who} counted to {few} and tried once more.",
        "A link to the {place} broke, so the {who} chose another way.",
        "The {who} was late, because the {place} was full.",
        "Two {adjective} packets met in a queue, and the second one had to wait.",
        "The {who} carried {many} numbers from the {place} to the {place}.",
        "Somebody had pulled a cable in the {place}, but nobody knew why.",
        "The sum of {few} and {few} was right, although the {who} had doubted it.",
    ],
    "closing": [
        "In the end, every worker had the same sum.",
        "By {hour}, the {place} was quiet again.",
        "The {who} was {adjective}, and the training went on.",
        "That is why the {who} never trusts a {adjective} cable.",
        "Nothing was counted twice, and nothing was forgotten.",
    ],
    "question": [
        "where are my {many} packets",
        "who has seen the sum of {few} and {few}",
        "is the {place} still {adjective}",
        "how long must I wait",
    ],
    "speech": [
        "the {place} was never so {adjective}",
        "I have seen this number before",
        "I lost {few} in the {place}",
        "one of the {few} is missing",
        "I shall ask the {who}",
        "a sum is only as good as its smallest part",
    ],
    "who": [
        "switch",
        "worker",
        "server",
        "operator",
        "old router",
        "root switch",
        "gardener",
        "night watch",
        "student",
    ],
    "place": ["rack", "cellar", "machine room", "harbour", "library", "second rack", "mountain hut", "kitchen"],
    "adjective": [
        "slow",
        "quiet",
        "crowded",
        "tired",
        "patient",
        "brave",
        "dusty",
        "clever",
        "red",
        "cold",
        "generous",
    ],
    "time": ["morning", "evening", "night", "winter", "spring", "Monday"],
    "hour": ["midnight", "noon", "five o'clock", "seven o'clock", "half past nine", "a quarter to three"],
    "many": ["twelve", "twenty", "forty", "a hundred", "three hundred", "a thousand", "many"],
    "few": ["two", "three", "four", "five", "six", "seven", "eight", "nine"],
}


def tales(characters: int = 300_000, seed: int = 1) -> str:
    """Whole tales with this number of characters or a few more."""
    draw = random.Random(seed)  # random() gives the same numbers in every release of Python

    def made(template: str) -> str:
        before, brace, rest = template.partition("{")
        if not brace:
            return before
        name, _, after = rest.partition("}")
        choices = PARTS[name]
        return before + made(choices[int(draw.random() * len(choices))]) + made(after)

    written: list[str] = []
    length = 0
    while length < characters:
        tale = made("{tale}")
        tale = tale[0].upper() + tale[1:]
        written.append(tale)
        length += len(tale)
    return "".join(written)


if __name__ == "__main__":
    print(tales(2_000), end="")
