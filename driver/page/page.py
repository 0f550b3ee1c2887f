"""One self-contained HTML page about compiled programs: it needs no network, and no server."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path

from .contents import Program, Texts, contents


def make_page(title: str, programs: Sequence[Program]) -> str:
    """The page's text."""
    texts = Texts()
    graphs = [contents(program, texts) for program in programs]
    data = json.dumps({"graphs": graphs, "texts": list(texts.numbers)}, separators=(",", ":"))
    # No text of a program may end the element that holds it
    parts = {
        "title": html.escape(title),
        "style": _file("page.css"),
        "script": _file("page.js"),
        "data": data.replace("<", "\\u003c"),
    }
    page = _file("page.html")
    for name, text in parts.items():
        page = page.replace(f"@{name}@", text)
    return page


def _file(name: str) -> str:
    return (Path(__file__).parent / name).read_text("utf-8")
