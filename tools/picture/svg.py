"""Rows of a screen as an SVG that looks like a terminal window. Pure, and the same every time.

The file stands alone: no font, style sheet or script from elsewhere. Every span carries its place
and its width, so columns line up in whatever monospaced font the reader has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from tools.picture.screen import Row, Span, Style

FONT: Final = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"
FONT_SIZE: Final = 14
COLUMN: Final = 8.43  # what most monospaced fonts take for a character: 0.602 of the size
LINE: Final = 20
MARGIN: Final = 18
BAR: Final = 36

BACKGROUND: Final = "#1b1f27"
BAR_COLOUR: Final = "#2a303b"
TEXT: Final = "#d8dee9"
FAINT: Final = "#8b95a7"
BUTTONS: Final = ("#ee6a5f", "#f5bd4f", "#61c454")
COLOURS: Final = (
    *("#4c566a", "#f07178", "#a3d57a", "#ffcb6b", "#82aaff", "#d49bf0", "#76d6e6", "#d8dee9"),
    *("#8b95a7", "#ff8b92", "#c3e88d", "#ffe08a", "#a6c4ff", "#e3b9fb", "#a5ecf7", "#ffffff"),
)


def svg(rows: Sequence[Row], title: str, columns: int) -> str:
    """The picture of a window that is `columns` wide and as high as the rows need."""
    width = round(columns * COLUMN + 2 * MARGIN)
    height = BAR + len(rows) * LINE + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label={quoteattr(title)}>',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" rx="10" fill="{BACKGROUND}"/>',
        f'<path d="M0 {BAR}V10a10 10 0 0 1 10-10H{width - 10}a10 10 0 0 1 10 10V{BAR}z" '
        f'fill="{BAR_COLOUR}"/>',
        *(
            f'<circle cx="{MARGIN + 4 + 20 * number}" cy="{BAR // 2}" r="6" fill="{colour}"/>'
            for number, colour in enumerate(BUTTONS)
        ),
        f'<g font-family="{FONT}" font-size="{FONT_SIZE}" fill="{TEXT}">',
        f'<text x="{width // 2}" y="{BAR // 2 + 5}" text-anchor="middle" fill="{FAINT}">'
        f"{escape(title)}</text>",
        *(_row(row, BAR + MARGIN + number * LINE + FONT_SIZE) for number, row in enumerate(rows)),
        "</g>",
        "</svg>",
    ]
    return "\n".join(line for line in lines if line) + "\n"


def _row(row: Row, y: int) -> str:
    if not row:
        return ""
    return f'<text y="{y}" xml:space="preserve">{"".join(map(_span, row))}</text>'


def _span(span: Span) -> str:
    x = _number(MARGIN + span.column * COLUMN)
    length = _number(len(span.text) * COLUMN)
    look = _look(span.style)
    return f'<tspan x="{x}" textLength="{length}"{look}>{escape(span.text)}</tspan>'


def _look(style: Style) -> str:
    weight = ' font-weight="bold"' if style.bold else ""
    if style.colour is not None:
        return f'{weight} fill="{COLOURS[style.colour]}"'
    return f'{weight} fill="{FAINT}"' if style.faint else weight


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
