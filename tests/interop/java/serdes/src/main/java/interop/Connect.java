package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import io.confluent.connect.avro.AvroConverter;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Timestamp;

/** Kafka Connect's converter for Avro: schemas of connectors, with the attributes they need, come back as they went. */
final class Connect {
  private static final Schema ONE = SchemaBuilder.struct().name("shop.Row").version(1)
      .field("id", Schema.INT64_SCHEMA).field("at", Timestamp.SCHEMA).build();
  private static final Schema TWO = SchemaBuilder.struct().name("shop.Row").version(2)
      .field("id", Schema.INT64_SCHEMA).field("at", Timestamp.SCHEMA)
      .field("note", Schema.OPTIONAL_STRING_SCHEMA).build();
  private static final Schema BAD =
      SchemaBuilder.struct().name("shop.Row").version(3).field("id", Schema.STRING_SCHEMA).build();

  private final Serdes serdes;

  Connect(Serdes serdes) {
    this.serdes = serdes;
  }

  void tell() throws Exception {
    step("register, evolve, encode, decode");
    var writer = converter();
    var first = writer.fromConnectData("rows", ONE, row(ONE));
    var second = writer.fromConnectData("rows", TWO, row(TWO).put("note", "ü"));
    equal("versions", 2, serdes.client().getAllVersions("rows-value").size());
    var read = converter().toConnectData("rows", first);
    equal("schema", ONE, read.schema());
    equal("value", row(ONE), read.value());
    equal("the second", "ü", ((Struct) converter().toConnectData("rows", second).value()).get("note"));
    refused("incompatible", ConfigException.class,
        () -> writer.fromConnectData("rows", BAD, new Struct(BAD).put("id", "one")));
    serdes.delete("rows-value");
  }

  private AvroConverter converter() {
    var converter = new AvroConverter();
    converter.configure(serdes.settings(Map.of()), false);
    return converter;
  }

  private static Struct row(Schema schema) {
    return new Struct(schema).put("id", 7L).put("at", new java.util.Date(1_700_000_000_000L));
  }
}
