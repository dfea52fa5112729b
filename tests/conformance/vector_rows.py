# SPDX-License-Identifier: Apache-2.0
"""Reads the committed vectors wire.json and control.json, for tests of the readers in Python and Lua."""

from __future__ import annotations

import json
import sys
from enum import IntEnum
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "support"))

import wire_format  # noqa: E402


def rows_of(name: str) -> list[dict[str, Any]]:
    return json.loads((FOLDER / name).read_text())


def bytes_of(row: dict[str, Any]) -> bytes:
    return bytes.fromhex(row["hex"]) + bytes(row["zero_bytes_after_hex"])


def lanes_of(row: dict[str, Any]) -> bytes:
    """Returns all lanes of a row. The row leaves out lanes within the zeros at the end."""
    spelt = b"".join(lane.to_bytes(4, "big") for lane in row["lanes"])
    return spelt.ljust(wire_format.LANE_BYTES * row["lane_count"], b"\0")


def name_of(value: IntEnum) -> str:
    return value.name.lower().replace("_", "-")


def endpoint(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {"family": row[f"{name}_family"], "port": row[f"{name}_port"], "host": bytes(row[f"{name}_host"])}


def numbered(kind: type[IntEnum], name: str) -> IntEnum:
    return next(value for value in kind if name_of(value) == name)


def edges(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"kind": numbered(wire_format.EdgeKind, edge["kind"]), "evidence": numbered(wire_format.Evidence, edge["evidence"]),
         "unit": edge["unit"], "member": edge["member"], "silent_ms": edge["silent_ms"], "detail": edge["detail"],
         "at": endpoint(edge, "at")}
        for edge in row["edges"]
    ]  # fmt: skip


def store_message_of(row: dict[str, Any]) -> tuple[wire_format.StoreMessage, dict[str, Any]]:
    kind = wire_format.StoreMessage[row.pop("type")]
    for name in {"address", "leaf"} & row.keys():
        row[name] = {**row[name], "host": bytes(row[name]["host"])}
    if "sockets" in row:
        row["sockets"] = [{**each, "host": bytes(each["host"])} for each in row["sockets"]]
    return kind, row


def message_of(row: dict[str, Any]) -> tuple[wire_format.Message | wire_format.StoreMessage, dict[str, Any]]:
    """Returns the type and fields of a row of control.json, with the names of wire.toml and values as numbers."""
    row = dict(row)
    if row["type"] in wire_format.StoreMessage.__members__:
        return store_message_of(row)
    kind = wire_format.Message[row.pop("type")]
    if kind == wire_format.Message.REFUSED:
        row["reason"] = numbered(wire_format.Refusal, row["reason"])
    if "ticket" in row:
        row["ticket"] = bytes(row["ticket"])
    if "edges" in row:
        row["edges"] = edges(row)
    if kind != wire_format.Message.JOIN:
        return kind, row
    terms = {name: row[name] for name in ("job", "token", "channel", "lanes", "window_log2", "audit", "aggregators",
                                          "first_seq", "mask1", "scale")}  # fmt: skip
    for name in ("server", "group", "root"):
        terms[name] = endpoint(row, name)
    return kind, {"nonce": row["nonce"], "terms": terms, "cookie": row["cookie"], "epoch": row["epoch"],
                  "level": row["level"], "begun": row["begun"],
                  "receives_group": row["hears_group"], "int32_path": row["int32_path"], "ticket": row["ticket"],
                  "units": row["units"],
                  "pace": row["pace"], "edges": row["edges"], "statements": row["statements"],
                  "job_name": row["job_name"]}  # fmt: skip
