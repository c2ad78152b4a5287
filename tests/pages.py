"""Commands that pages tell people to type."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def shell_blocks(page: str, heading: str = "") -> list[str]:
    """The blocks of commands of a page, or of what is under one of its headings."""
    text = (ROOT / page).read_text()
    if heading:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
