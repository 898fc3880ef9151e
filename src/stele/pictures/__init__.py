"""Pictures of schemas and their earlier versions, as SVG: the same in pages, files, reports and notebooks.

Each picture is a pure function from a response of the registry (`stele.protocol.history`) to a `Picture`. Its twin is a
`PictureTable` with the same content.
"""

from stele.pictures.atlas import draw_atlas, tabulate_atlas
from stele.pictures.compatibility_matrix import draw_compatibility_matrix, tabulate_matrix
from stele.pictures.field_lifelines import draw_field_lifelines, tabulate_lifelines
from stele.pictures.links import NO_LINKS, PictureLinks
from stele.pictures.neighbourhood import draw_neighbourhood, tabulate_neighbourhood
from stele.pictures.story_line import draw_story_line, tabulate_history
from stele.pictures.svg import Picture, read_stylesheet
from stele.pictures.table import PictureTable, render_figure

__all__ = [
    "NO_LINKS",
    "Picture",
    "PictureLinks",
    "PictureTable",
    "draw_atlas",
    "draw_compatibility_matrix",
    "draw_field_lifelines",
    "draw_neighbourhood",
    "draw_story_line",
    "read_stylesheet",
    "render_figure",
    "tabulate_atlas",
    "tabulate_history",
    "tabulate_lifelines",
    "tabulate_matrix",
    "tabulate_neighbourhood",
]
