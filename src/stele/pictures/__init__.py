"""Pictures of schemas and all their previous forms, as SVG: the same in pages, files, reports and notebooks.

Each picture is a pure function from an answer of the registry (`stele.protocol.history`) to a `Picture`, and has a twin
that says the same as a `PictureTable`.
"""

from stele.pictures.links import NO_LINKS, PictureLinks
from stele.pictures.story_line import draw_story_line, tabulate_history
from stele.pictures.svg import Picture, read_stylesheet
from stele.pictures.table import PictureTable

__all__ = [
    "NO_LINKS",
    "Picture",
    "PictureLinks",
    "PictureTable",
    "draw_story_line",
    "read_stylesheet",
    "tabulate_history",
]
