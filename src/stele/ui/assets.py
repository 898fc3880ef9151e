"""Files that pages load: stylesheet and scripts, each at an address with its hash, which browsers keep for a year."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final, NamedTuple, cast

from litestar import Request, Response, get
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from stele.apis.http.access import NO_RIGHT_NEEDED
from stele.apis.http.dependencies import depend_on_nothing
from stele.apis.http.requests import ANSWERS_ANYBODY
from stele.pictures import read_stylesheet

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "md": "text/plain; charset=utf-8",
}
_KEPT: Final = "public, max-age=31536000, immutable"


class Asset(NamedTuple):
    """A file that pages load.

    name    name of the file
    digest  first 16 hexadecimal digits of its SHA-256
    body    its bytes
    type    its media type
    """

    name: str
    digest: str
    body: bytes
    type: str


@cache
def list_assets() -> dict[str, Asset]:
    """Return all files that pages load, by name."""
    assets = {}
    for file in (files("stele.ui") / "static").iterdir():
        media_type = _TYPES.get(file.name.rpartition(".")[2])
        if media_type is not None:
            body = file.read_bytes()
            assets[file.name] = _make_asset(file.name, body, media_type)
    pictures = read_stylesheet().encode()
    return assets | {"pictures.css": _make_asset("pictures.css", pictures, _TYPES["css"])}


def _make_asset(name: str, body: bytes, media_type: str) -> Asset:
    return Asset(name, sha256(body).hexdigest()[:16], body, media_type)


def asset_path(name: str) -> str:
    """Return the path of a file below `/ui`. Raises `KeyError` for an unknown file."""
    asset = list_assets()[name]
    return f"/static/{asset.digest}/{name}"


@get("/ui/static/{digest:str}/{file:str}", opt=NO_RIGHT_NEEDED | {ANSWERS_ANYBODY: True})
async def get_asset(request: Request[Any, Any, Any], digest: FromPath[str], file: FromPath[str]) -> Response[bytes]:
    # GET /ui/static/{digest}/{file}
    """Return a file that pages load. An address with the hash of another release returns the file of this release."""
    asset = list_assets().get(file)
    if asset is None:
        raise NotFoundException
    depend_on_nothing(cast("dict[str, Any]", request.scope))
    cache_control = _KEPT if digest == asset.digest else "no-cache"
    return Response(asset.body, media_type=asset.type, headers={"cache-control": cache_control})


ROUTES: Final = (get_asset,)
"""The endpoint that sends the files."""
