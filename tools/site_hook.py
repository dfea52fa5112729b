# SPDX-License-Identifier: Apache-2.0
"""A hook of mkdocs: links from a page to a file outside of docs/ become the text of the link with the file's path.

Such links work in the repository. The site has nothing that they could lead to, because the repository has no public
address. Links to a folder of docs/ are treated in the same way.
"""

import os
import re
from pathlib import Path

FENCE = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s#:]+)(#[^()\s]*)?\)")


def on_page_markdown(markdown, page, config, files):
    folder = Path(page.file.src_uri).parent
    docs = Path(config.docs_dir)

    def plain(match):
        target = os.path.normpath(docs / folder / match[2])
        path = os.path.relpath(target, docs)
        if not path.startswith("..") and not os.path.isdir(target):
            return match[0]
        path = os.path.relpath(target, docs.parent)
        shown = match[1].strip("`/")
        return match[1] if shown == path or "`" in match[1] else f"{match[1]} (`{path}`)"

    pieces, end = [], 0
    for fence in FENCE.finditer(markdown):
        pieces += [LINK.sub(plain, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*pieces, LINK.sub(plain, markdown[end:])])
