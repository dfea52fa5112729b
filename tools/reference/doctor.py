# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/reference/doctor.md: the checks, from the table that names them for `atp doctor`, and the keys of its
JSON, from the comments `// doctor.md, KEY: MEANING` where it writes them."""

from __future__ import annotations

import re
from pathlib import Path

from reference.errors import value_of
from source_tree import Missing
from written import on_page, page_table, text_of

TABLE = Path("src/drivers/doctor/check_table.cc")
COMMAND = Path("src/apps/atp/doctor_command.cc")
STRING = r'(?:"(?:\\.|[^"\\])*"\s*)+'
CHECK = re.compile(rf"\{{CheckName::\w+,\s*({STRING}),\s*({STRING})\}}")


def checks(root: Path) -> str:
    table = text_of(root, TABLE)
    rows = [[value_of(name), value_of(examines)] for name, examines in CHECK.findall(table)]
    if not rows or len(rows) != len(re.findall(r"\{CheckName::", table)):
        raise Missing("the table of checks cannot be read: write {CheckName::NAME, LITERAL, LITERAL}")
    return on_page([*page_table(["check", "examines"], rows), ""])


def json_keys(root: Path) -> str:
    code = text_of(root, COMMAND)
    rows = re.findall(r"// doctor\.md, (\S+): (.*)\n", code)
    written = set(re.findall(r'\{"(\w+)", ', code))
    if {key.split(".")[-1] for key, _ in rows} != written:
        raise Missing(f"{COMMAND}: write `// doctor.md, KEY: MEANING` above the keys {', '.join(sorted(written))}")
    return on_page(page_table(["key", "holds"], [[f"`{key}`", meaning] for key, meaning in rows]))
