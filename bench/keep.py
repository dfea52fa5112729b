# SPDX-License-Identifier: Apache-2.0
"""Keeps what was measured in files, so that an interrupted run continues."""

import json
import os


def kept(folder, name, make):
    """What `make` returned when this name was first measured into the folder. Without a folder, measures now."""
    if not folder:
        return make()
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{name}.json")
    if not os.path.exists(path):
        made = make()
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            json.dump(made, file)
        os.replace(f"{path}.part", path)
    with open(path, encoding="utf-8") as file:
        return json.load(file)
