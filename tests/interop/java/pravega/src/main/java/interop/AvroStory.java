package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import io.pravega.client.stream.Serializer;
import io.pravega.schemaregistry.client.SchemaRegistryClient;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions.ResourceNotFoundException;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions.SchemaValidationFailedException;
import io.pravega.schemaregistry.contract.data.Compatibility;
import io.pravega.schemaregistry.contract.data.SerializationFormat;
import io.pravega.schemaregistry.serializer.avro.schemas.AvroSchema;
import io.pravega.schemaregistry.serializer.shared.codec.Codecs;
import io.pravega.schemaregistry.serializer.shared.impl.SerializerConfig;
import io.pravega.schemaregistry.serializers.SerializerFactory;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;

/** Avro: a schema and its successor, events of both read with both, the codecs of the serializers. */
final class AvroStory {
  static final Schema ONE =
      SchemaBuilder.record("Order").namespace("shop").fields().requiredInt("amount").endRecord();
  static final Schema TWO = SchemaBuilder.record("Order").namespace("shop").fields()
      .requiredInt("amount").name("currency").type().stringType().stringDefault("EUR").endRecord();
  static final Schema BAD =
      SchemaBuilder.record("Order").namespace("shop").fields().requiredString("amount").endRecord();
  private static final String GROUP = "avro orders/2024";

  private final SchemaRegistryClient client;

  AvroStory(SchemaRegistryClient client) {
    this.client = client;
  }

  void tell() {
    step("register and evolve");
    client.addGroup(GROUP, Pravega.properties(SerializationFormat.Avro, Compatibility.backward(), false));
    var first = writer(ONE, Codecs.None).serialize(order(ONE));
    var second = writer(TWO, Codecs.None).serialize(order(TWO));
    equal("encoding ids", List.of(0, 1), List.of(Pravega.encodingId(first), Pravega.encodingId(second)));
    refused("amounts that are texts", SchemaValidationFailedException.class, () -> writer(BAD, Codecs.None));
    read(List.of(first, second));
    codecs();
    typed();
    delete(first);
  }

  private void read(List<ByteBuffer> events) {
    step("read with either schema, and with the one they were written with");
    for (var event : events) {
      equal("read with the first", order(ONE), reader(ONE).deserialize(event.duplicate()));
    }
    var evolved = (GenericRecord) reader(TWO).deserialize(events.get(0).duplicate());
    equal("a default", "EUR", evolved.get("currency").toString());
    equal("as written", order(ONE), reader(null).deserialize(events.get(0).duplicate()));
    equal("as written", order(TWO), reader(null).deserialize(events.get(1).duplicate()));
    refused("a reader that cannot read the latest", IllegalArgumentException.class, () -> reader(BAD));
  }

  private void codecs() {
    step("compressed");
    var plain = Pravega.config(client, GROUP).decoders(Map.of()).build();
    for (var codec : List.of(Codecs.GzipCompressor, Codecs.SnappyCompressor)) {
      var event = writer(TWO, codec).serialize(order(TWO));
      equal(codec.name(), order(TWO), reader(TWO).deserialize(event));
    }
    var names = client.getCodecTypes(GROUP).stream().map(codec -> codec.getName()).collect(Collectors.toSet());
    equal("codecs", Set.of("application/x-gzip", "application/x-snappy-framed"), names);
    equal("codecs of a reader", true, SerializerFactory.avroGenericDeserializer(plain, null) != null);
  }

  private void typed() {
    step("into classes");
    var config = Pravega.config(client, "avro classes").registerSchema(true)
        .createGroup(SerializationFormat.Avro, Compatibility.allowAny(), true).build();
    var schema = AvroSchema.of(Payment.class);
    var sent = new Payment();
    sent.reference = "r-1";
    var event = SerializerFactory.avroSerializer(config, schema).serialize(sent);
    equal("reference", "r-1", SerializerFactory.avroDeserializer(config, schema).deserialize(event).reference);
    client.removeGroup("avro classes");
  }

  private void delete(ByteBuffer event) {
    step("delete");
    var latest = client.getLatestSchemaVersion(GROUP, null).getVersionInfo();
    equal("the latest", Pravega.version("shop.Order", "Avro", 1, 1), latest);
    client.deleteSchemaVersion(GROUP, latest);
    equal("left", 1, client.getSchemaVersions(GROUP, null).size());
    equal("still readable", order(ONE), reader(null).deserialize(event.duplicate()));
    client.removeGroup(GROUP);
    refused("the group", ResourceNotFoundException.class, () -> client.getGroupProperties(GROUP));
  }

  private Serializer<GenericRecord> writer(Schema schema, Codecs codec) {
    SerializerConfig config = Pravega.config(client, GROUP).registerSchema(true)
        .registerCodec(codec != Codecs.None).encoder(codec.getCodec()).build();
    return SerializerFactory.avroSerializer(config, AvroSchema.ofRecord(schema));
  }

  private Serializer<Object> reader(Schema schema) {
    var config = Pravega.config(client, GROUP).build();
    return SerializerFactory.avroGenericDeserializer(config, schema == null ? null : AvroSchema.of(schema));
  }

  private static GenericRecord order(Schema schema) {
    var builder = new GenericRecordBuilder(schema).set("amount", 42);
    return (schema == TWO ? builder.set("currency", new org.apache.avro.util.Utf8("USD")) : builder).build();
  }

  /** A class whose schema the client derives. */
  public static class Payment {
    String reference;
  }
}
