"""The SVG of a screen stands alone, is well formed and lines up."""

from __future__ import annotations

from xml.etree import ElementTree

from tools.picture.screen import rows
from tools.picture.svg import COLOURS, COLUMN, FAINT, LINE, MARGIN, svg

SPACE = "{http://www.w3.org/2000/svg}"
OUTPUT = '\x1b[36m[0]\x1b[0m a < b && "c"\r\n\r\n\x1b[2mnote\x1b[0m\r\n\x1b[1;31mFailed\x1b[0m\r\n'


def drawn(output: str = OUTPUT) -> ElementTree.Element:
    return ElementTree.fromstring(svg(rows(output), "demo & more", 90))


def spans(root: ElementTree.Element) -> list[ElementTree.Element]:
    return list(root.iter(f"{SPACE}tspan"))


def test_text_survives_as_it_was_written() -> None:
    assert [span.text for span in spans(drawn())] == ["[0]", ' a < b && "c"', "note", "Failed"]
    assert drawn().findtext(f"{SPACE}title") == "demo & more"


def test_colours_and_weights_are_the_terminals() -> None:
    looks = [(span.get("fill"), span.get("font-weight")) for span in spans(drawn())]
    assert looks == [(COLOURS[6], None), (None, None), (FAINT, None), (COLOURS[1], "bold")]


def test_every_span_has_its_column_and_width() -> None:
    second = spans(drawn())[1]
    assert float(second.get("x", "")) == round(MARGIN + 3 * COLUMN, 2)
    assert float(second.get("textLength", "")) == round(13 * COLUMN, 2)


def test_blank_row_takes_its_place() -> None:
    heights = [int(text.get("y", "")) for text in drawn().iter(f"{SPACE}text")][1:]
    assert [y - heights[0] for y in heights] == [0, 2 * LINE, 3 * LINE]


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = svg(rows(OUTPUT), "demo", 90)
    assert "href" not in text and "url(" not in text and "<style" not in text
    assert text.count("http") == 1  # the namespace


def test_same_output_gives_the_same_picture() -> None:
    assert svg(rows(OUTPUT), "demo", 90) == svg(rows(OUTPUT), "demo", 90)
