"""Runs every call of kafka-schema-registry-admin against a registry. Argument: its URL."""

from __future__ import annotations

import sys

import pytest
from kafka_schema_registry_admin import SchemaRegistry
from kafka_schema_registry_admin.client_wrapper.errors import ApiGenericException

ONE = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
TWO = {**ONE, "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": ""}]}
BAD = {**ONE, "fields": [{"name": "a", "type": "string"}]}

admin = SchemaRegistry(sys.argv[1])
assert set(admin.get_schema_types().json()) == {"AVRO", "JSON", "PROTOBUF"}
first = admin.post_subject_schema_version("ksra", ONE).json()["id"]
second = admin.post_subject_schema_version("ksra", TWO, normalize=True).json()["id"]
assert admin.post_subject_schema_version("ksra", ONE).json()["id"] == first
assert admin.post_subject_schema("ksra", TWO).json()["version"] == 2
assert "ksra" in admin.subjects
assert admin.get_all_subjects(subject_prefix="ksr").json() == ["ksra"]
assert admin.get_subject_versions("ksra").json() == [1, 2]
assert admin.get_subject_version_id("ksra", 1).json()["id"] == first
assert admin.get_subject_version_id_schema("ksra", 2).json()["name"] == "R"
assert admin.get_subject_versions_referencedby("ksra", 1).json() == []
assert admin.get_schema_from_id(second).json()["schema"]
assert admin.get_schema_versions_from_id(second).json() == [{"subject": "ksra", "version": 2}]
assert admin.post_compatibility_subject_versions("ksra", TWO).json() == {"is_compatible": True}
assert admin.post_compatibility_subject_version_id("ksra", 1, BAD).json() == {"is_compatible": False}
for schema, code in ((BAD, 409), ("{", 422)):
    with pytest.raises(ApiGenericException) as refused:
        admin.post_subject_schema_version("ksra", schema)
    assert refused.value.code == code
assert admin.put_subject_config("ksra", compatibility="FULL").json() == {"compatibility": "FULL"}
assert admin.get_subject_config("ksra").json() == {"compatibilityLevel": "FULL"}
assert admin.put_compatibility_subject_config("ksra", "NONE").json() == {"compatibility": "NONE"}
assert admin.get_compatibility_subject_config("ksra").json() == {"compatibilityLevel": "NONE"}
assert admin.get_mode(as_str=True) == "READWRITE"
assert admin.put_subject_mode("ksra", "READONLY").json() == {"mode": "READONLY"}
assert admin.get_subject_mode("ksra").json() == {"mode": "READONLY"}
assert admin.put_subject_mode("ksra", "READWRITE").json() == {"mode": "READWRITE"}
assert admin.delete_subject("ksra").json() == [1, 2]
with pytest.raises(ApiGenericException) as missing:
    admin.get_subject_versions("ksra")
assert missing.value.code == 404
assert admin.get_all_subjects(subject_prefix="ksra", deleted=True).json() == ["ksra"]
