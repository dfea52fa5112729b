#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation site without network, and checks that its pages ask no other host for anything.

usage: site_test.py SOURCE_DIR     Exit status 77: mkdocs-material is missing.
"""

import html.parser
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(sys.argv.pop(1)).resolve()
NOWHERE = "http://127.0.0.1:9"  # a proxy that is none, so that every request fails
# Attributes that a browser loads without a click.
LOADED = {
    ("script", "src"), ("link", "href"), ("img", "src"), ("img", "srcset"), ("source", "src"), ("source", "srcset"),
    ("iframe", "src"), ("video", "src"), ("audio", "src"), ("embed", "src"), ("object", "data"), ("image", "href"),
    ("use", "href"), ("form", "action"), ("body", "background"), ("meta", "content"),
}  # fmt: skip
# The theme's scripts name two hosts. They ask them only for a page with a diagram (class mermaid), and for one with the
# address of a repository (component source). No page of the site has either.
CONDITIONAL = {"unpkg.com": "mermaid", "api.github.com": 'data-md-component="source"'}
REQUEST = re.compile(r"""["'`](https?:)?//([\w.-]+\.\w+)/[^"'`]*["'`]""")
NAMES = {"www.w3.org"}  # names of XML, which no browser asks for
CSS_REQUEST = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])(?!data:)((?:https?:)?//[^"')]+)""")
BOM_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


class Requests(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, "str | None"]]) -> None:
        for name, value in attributes:
            if (tag, name) in LOADED and re.match(r"(https?:)?//", value or ""):
                self.found.append(f"<{tag} {name}={value}>")
            if name == "style":
                self.found += CSS_REQUEST.findall(value or "")


class Site(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.site = Path(cls.folder.name, "site")
        command = [sys.executable, "-B", "-m", "mkdocs", "build", "--strict", "--site-dir", cls.site]
        proxies = {name: NOWHERE for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy")}
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **proxies, "no_proxy": "", "NO_MKDOCS_2_WARNING": "1"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        if done.returncode != 0:
            warnings = "\n".join(line for line in done.stderr.splitlines() if not line.startswith("INFO"))
            raise AssertionError(f"mkdocs build --strict: status {done.returncode}\n{warnings}")

    def files(self, *suffixes: str) -> Iterator[Path]:
        found = [path for path in self.site.rglob("*") if path.suffix in suffixes]
        self.assertTrue(found, suffixes)
        yield from found

    def test_pages_load_nothing_from_other_hosts(self) -> None:
        for page in self.files(".html"):
            reader = Requests()
            reader.feed(page.read_text(encoding="utf-8"))
            self.assertEqual(reader.found, [], page.name)

    def test_styles_and_pictures_load_nothing_from_other_hosts(self) -> None:
        for style in self.files(".css", ".svg"):
            self.assertEqual(CSS_REQUEST.findall(style.read_text(encoding="utf-8")), [], style.name)

    def test_scripts_ask_hosts_only_for_what_no_page_has(self) -> None:
        hosts = set()
        for script in self.files(".js"):
            text = BOM_COMMENT.sub("", script.read_text(encoding="utf-8"))
            hosts |= {match[2] for match in REQUEST.finditer(text)} - NAMES
        self.assertLessEqual(hosts, set(CONDITIONAL))
        for page in self.files(".html"):
            text = page.read_text(encoding="utf-8")
            for cause in CONDITIONAL.values():
                self.assertNotIn(cause, text, page.name)

    def test_a_page_has_search_and_both_colours(self) -> None:
        text = (self.site / "index.html").read_text(encoding="utf-8")
        for part in ('data-md-component="search"', 'data-md-color-scheme="default"', 'data-md-color-scheme="slate"'):
            self.assertIn(part, text)
        self.assertTrue((self.site / "search/search_index.json").exists())

    def test_links_out_of_the_documents_are_text(self) -> None:
        text = (self.site / "develop/build-and-test.html").read_text(encoding="utf-8")
        self.assertNotIn('tools/coverage"', text)
        self.assertIn("tools/coverage", text)

    def test_reader_of_pages_finds_requests(self) -> None:
        reader = Requests()
        reader.feed('<img src="//a.b/c"><a href="https://a.b"><p style="background: url(https://d.e/f)">')
        self.assertEqual(reader.found, ["<img src=//a.b/c>", "https://d.e/f"])


if __name__ == "__main__":
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        print("docs.site: mkdocs-material is missing; tools/setup.sh installs it")
        sys.exit(77)
    unittest.main()
