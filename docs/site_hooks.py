# SPDX-License-Identifier: Apache-2.0
"""What the site takes from outside of docs/: the README as its first page, and every file that a page links to."""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[1]
LINK: Final = re.compile(r"(\]\()([^)#\s]+)(#[^)]*)?(\))")
START: Final = "index.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the README, and whatever pages link to that is no page of docs/, and what that links to."""
    waiting = ["README.md", *(f"docs/{file.src_uri}" for file in files.documentation_pages())]
    seen = set(waiting)
    while waiting:
        source = waiting.pop()
        if not source.startswith("docs/"):
            files.append(File.generated(config, _uri(source), abs_src_path=str(ROOT / source)))
        if source.endswith(".md"):
            found = {target for target in _targets(source) if (ROOT / target).is_file()} - seen
            seen |= found
            waiting += sorted(found)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to where their files are in the site; those to folders stay text."""
    here = _source(page.file.src_uri)

    def replaced(link: re.Match[str]) -> str:
        opening, target, heading, closing = link.groups()
        if "://" in target or target.startswith("mailto:"):
            return link[0]
        found = normpath(str(PurePosixPath(here).parent / target))
        uri = _uri(found)
        if files.get_file_from_path(uri) is None:
            return "]"  # the text without a link
        up = "../" * page.file.src_uri.count("/")
        return f"{opening}{up}{uri}{heading or ''}{closing}"

    return LINK.sub(replaced, markdown)


def _targets(source: str) -> set[str]:
    text = (ROOT / source).read_text(encoding="utf-8")
    names = (link[2] for link in LINK.finditer(text) if "://" not in link[2])
    return {normpath(str(PurePosixPath(source).parent / name)) for name in names}


def _uri(source: str) -> str:
    """Where a file of the repository is in the site."""
    return START if source == "README.md" else source.removeprefix("docs/")


def _source(uri: str) -> str:
    """Which file of the repository a page of the site is."""
    if uri == START:
        return "README.md"
    return f"docs/{uri}" if (ROOT / "docs" / uri).is_file() else uri
