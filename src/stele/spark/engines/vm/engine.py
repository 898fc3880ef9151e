"""The `vm` engine."""

from __future__ import annotations

from stele.formats.avro.model import AvroSchema
from stele.spark.engines.base import Decoder, Encoder, FindWriter
from stele.spark.engines.resolve import Resolver
from stele.spark.engines.vm.decoder import VmDecoder
from stele.spark.engines.vm.encoder import VmEncoder
from stele.wire.confluent import id_prefix


class VmEngine:
    """Decodes and encodes whole columns with kernels compiled by numba."""

    name = "vm"

    def decoder(
        self, reader: AvroSchema, writers: FindWriter, *, for_spark: bool = False, recursion: int = 0
    ) -> Decoder:
        """See `Engine.decoder`."""
        return VmDecoder(Resolver(reader, for_spark=for_spark, recursion=recursion), writers)

    def encoder(self, schema: AvroSchema, schema_id: int, *, for_spark: bool = False, recursion: int = 0) -> Encoder:
        """See `Engine.encoder`."""
        resolver = Resolver(schema, for_spark=for_spark, recursion=recursion)
        return VmEncoder(resolver.root, resolver.resolve_writer(schema), id_prefix(schema_id))
