# SPDX-License-Identifier: Apache-2.0
"""The table of checks in docs/reference/doctor.md, from the table that names them for `atp doctor`."""

from __future__ import annotations

import re
from pathlib import Path

from reference.errors import value_of
from source_tree import Missing
from written import on_page, page_table, text_of

TABLE = Path("src/drivers/doctor/check_table.cc")
STRING = r'(?:"(?:\\.|[^"\\])*"\s*)+'
CHECK = re.compile(rf"\{{CheckName::\w+,\s*({STRING}),\s*({STRING})\}}")


def checks(root: Path) -> str:
    table = text_of(root, TABLE)
    rows = [[value_of(name), value_of(examines)] for name, examines in CHECK.findall(table)]
    if not rows or len(rows) != len(re.findall(r"\{CheckName::", table)):
        raise Missing("the table of checks cannot be read: write {CheckName::NAME, LITERAL, LITERAL}")
    return on_page([*page_table(["check", "examines"], rows), ""])
