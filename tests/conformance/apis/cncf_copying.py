"""Copying one registry into another through the CNCF dialect alone."""

from __future__ import annotations

from urllib.parse import quote

import httpx


async def pull_everything(source: httpx.AsyncClient, target: httpx.AsyncClient, prefix: str) -> None:
    """Copy all groups and versions of a source into a target.

    Groups get other names, versions keep their URIs, and schemas without an authority get that of the source.
    """
    for name in (await source.get("/schemagroups")).json():
        place = quote(name, safe="")
        attributes = (await source.get(f"/schemagroups/{place}")).json()
        await target.put(f"/schemagroups/{prefix}{place}", json={**attributes, "id": prefix + name})
        for schema in (await source.get(f"/schemagroups/{place}/schemas")).json():
            path = f"{place}/schemas/{quote(schema, safe='')}"
            for number in (await source.get(f"/schemagroups/{path}/versions")).json():
                version = await source.get(f"/schemagroups/{path}/versions/{number}")
                headers = {
                    "content-type": version.headers["content-type"],
                    "schema-version-id": version.headers["schema-version-uri"],
                    "schema-authority": version.headers.get("schema-authority", str(source.base_url)),
                }
                if "format" not in attributes:
                    headers["schema-format"] = version.headers["schema-format"]
                answer = await target.post(f"/schemagroups/{prefix}{path}", content=version.content, headers=headers)
                assert answer.status_code == 200, answer.text


async def uris(client: httpx.AsyncClient) -> dict[str, tuple[bytes, str]]:
    """Return the document and content type of every version of a registry by its URI, read by that URI."""
    documents = {}
    for name in (await client.get("/schemagroups")).json():
        for schema in (await client.get(f"/schemagroups/{quote(name)}/schemas")).json():
            path = f"/schemagroups/{quote(name)}/schemas/{quote(schema)}"
            for number in (await client.get(f"{path}/versions")).json():
                uri = (await client.head(f"{path}/versions/{number}")).headers["schema-version-uri"]
                answer = await client.get("/schema", params={"uri": uri})
                documents[uri] = (answer.content, answer.headers["content-type"])
    return documents
