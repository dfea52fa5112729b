#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks how pages of docs/ hang together: all but redirects are at most two clicks from docs/index.md, the navigation of
mkdocs.yml has exactly these pages, and a redirect names a page that exists.

usage: pages_test.py SOURCE_DIR
"""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1)).resolve()
DOCS = ROOT / "docs"
LINK = re.compile(r"\]\(\s*<?([^()\s<>#]+\.md)(?:#[^()\s]*)?>?\s*\)")
REDIRECT = re.compile(r"# .*\n(?:<a\b[^>]*></a>|\s)*This page moved to \[")
MOST_CLICKS = 2


def links_of(page: Path) -> set[Path]:
    text = page.read_text(encoding="utf-8")
    return {(page.parent / link).resolve() for link in LINK.findall(text) if "://" not in link}


def is_redirect(page: Path) -> bool:
    return bool(REDIRECT.match(page.read_text(encoding="utf-8")))


def named(pages: set[Path]) -> list[str]:
    return sorted(str(page.relative_to(DOCS)) for page in pages)


class Pages(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.redirects = {page for page in DOCS.rglob("*.md") if is_redirect(page)}
        self.pages = set(DOCS.rglob("*.md")) - self.redirects

    def test_every_page_is_at_most_two_clicks_from_the_index(self) -> None:
        reached = {DOCS / "index.md"}
        for _ in range(MOST_CLICKS):
            reached |= {target for page in reached if page.exists() for target in links_of(page)}
        self.assertEqual(named(self.pages - reached), [])

    def test_the_navigation_has_every_page_once(self) -> None:
        nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
        listed = re.findall(r"^ *- (\S+\.md)$", nav, re.MULTILINE)
        self.assertEqual(sorted(listed), named(self.pages))

    def test_a_redirect_names_a_page_that_is_none(self) -> None:
        for page in self.redirects:
            targets = links_of(page)
            self.assertTrue(targets, page)
            self.assertLessEqual(targets, self.pages, page)


if __name__ == "__main__":
    unittest.main()
