"""Request bodies in OpenAPI documents."""

from stele.apis.http.application import openapi_body
from stele.service.check import CheckRequest


def test_documented_bodies_are_whole() -> None:
    """The OpenAPI schema of a body has no references, and names every member."""
    operation = openapi_body(CheckRequest)()
    assert operation.request_body is not None
    content = operation.request_body.content["application/json"]  # type: ignore[union-attr]  # never a reference
    text = str(content.schema)
    assert "$ref" not in text
    assert all(name in text for name in CheckRequest.__struct_fields__)
