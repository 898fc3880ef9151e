package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import com.google.common.base.Charsets;
import com.google.common.collect.ImmutableMap;
import com.google.protobuf.DynamicMessage;
import io.pravega.schemaregistry.client.SchemaRegistryClient;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions.SerializationMismatchException;
import io.pravega.schemaregistry.contract.data.Compatibility;
import io.pravega.schemaregistry.contract.data.SchemaInfo;
import io.pravega.schemaregistry.contract.data.SerializationFormat;
import io.pravega.schemaregistry.serializer.avro.schemas.AvroSchema;
import io.pravega.schemaregistry.serializer.json.schemas.JSONSchema;
import io.pravega.schemaregistry.serializer.protobuf.schemas.ProtobufSchema;
import io.pravega.schemaregistry.serializer.shared.impl.CustomDeserializer;
import io.pravega.schemaregistry.serializer.shared.impl.CustomSerializer;
import io.pravega.schemaregistry.serializer.shared.impl.SerializerConfig;
import io.pravega.schemaregistry.serializer.shared.schemas.Schema;
import io.pravega.schemaregistry.serializers.SerializerFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;

/** A group that takes every format, and a format of one's own. */
final class FormatsStory {
  private static final String GROUP = "anything";

  private final SchemaRegistryClient client;
  private final SerializerConfig config;

  FormatsStory(SchemaRegistryClient client) {
    this.client = client;
    this.config = Pravega.config(client, GROUP).registerSchema(true)
        .createGroup(SerializationFormat.Any, Compatibility.allowAny(), true).build();
  }

  void tell() throws Exception {
    step("one group, three formats");
    var events = new ArrayList<ByteBuffer>();
    GenericRecord record = new GenericRecordBuilder(AvroStory.ONE).set("amount", 1).build();
    events.add(SerializerFactory.avroSerializer(config, AvroSchema.ofRecord(AvroStory.ONE)).serialize(record));
    var order = new JsonStory.Order(2, "EUR");
    var json = JSONSchema.of("Order", JsonStory.TWO, JsonStory.Order.class);
    events.add(SerializerFactory.jsonSerializer(config, json).serialize(order));
    ProtobufSchema<DynamicMessage> proto = ProtobufSchema.of("shop.Order", ProtobufStory.ONE);
    var message = ProtobufStory.order(ProtobufStory.ONE, 3);
    events.add(SerializerFactory.protobufSerializer(config, proto).serialize(message));
    equal("encoding ids", List.of(0, 1, 2), events.stream().map(Pravega::encodingId).toList());
    var reader = SerializerFactory.genericDeserializer(config);
    equal("Avro", record, reader.deserialize(events.get(0).duplicate()));
    equal("Protobuf", message.toString(), reader.deserialize(events.get(2).duplicate()).toString());
    asText(events);
    copied(events);
    custom();
    client.removeGroup(GROUP);
  }

  private void asText(List<ByteBuffer> events) {
    step("whatever it is, as JSON");
    var reader = SerializerFactory.deserializeAsJsonString(config);
    for (var event : events) {
      var text = reader.deserialize(event.duplicate()).replaceAll("\\s", "");
      equal("begins with the amount", true, text.startsWith("{\"amount\":"));
    }
  }

  private void copied(List<ByteBuffer> events) {
    step("copied with its schema into another group");
    var other = Pravega.config(client, "copy").registerSchema(true)
        .createGroup(SerializationFormat.Any, Compatibility.allowAny(), true).build();
    var reader = SerializerFactory.deserializerWithSchema(config);
    var writer = SerializerFactory.serializerWithSchema(other);
    for (var event : events) {
      var copy = writer.serialize(reader.deserialize(event.duplicate()));
      equal("the same but for its header", event.position(event.position()), copy);
    }
    equal("schemas", 3, client.getSchemaVersions("copy", null).size());
    client.removeGroup("copy");
  }

  private void custom() {
    step("a format of its own");
    var format = SerializationFormat.custom("csv");
    var group = Pravega.config(client, "csv").registerSchema(true)
        .createGroup(format, Compatibility.allowAny(), true).build();
    var schema = new Csv(format);
    var event = SerializerFactory.customSerializer(group, schema, schema).serialize(List.of("a", "b"));
    equal("read", List.of("a", "b"), SerializerFactory.customDeserializer(group, schema, schema).deserialize(event));
    equal("its name", "csv", client.getGroupProperties("csv").getSerializationFormat().getFullTypeName());
    var avro = AvroSchema.ofRecord(AvroStory.ONE).getSchemaInfo();
    refused("Avro", SerializationMismatchException.class, () -> client.addSchema("csv", avro));
    client.removeGroup("csv");
  }

  /** A schema that names columns, and the code to write and read its rows. */
  private record Csv(SerializationFormat format)
      implements Schema<List<String>>, CustomSerializer<List<String>>, CustomDeserializer<List<String>> {
    @Override
    public SchemaInfo getSchemaInfo() {
      return new SchemaInfo("row", format, ByteBuffer.wrap("first,second".getBytes(Charsets.UTF_8)), ImmutableMap.of());
    }

    @Override
    @SuppressWarnings("unchecked")
    public Class<List<String>> getTClass() {
      return (Class<List<String>>) (Class<?>) List.class;
    }

    @Override
    public void serialize(List<String> row, SchemaInfo schema, java.io.OutputStream to) {
      try {
        to.write(String.join(",", row).getBytes(Charsets.UTF_8));
      } catch (java.io.IOException error) {
        throw new java.io.UncheckedIOException(error);
      }
    }

    @Override
    public List<String> deserialize(java.io.InputStream from, SchemaInfo writer, SchemaInfo reader) {
      return List.of(new Scanner(from, Charsets.UTF_8).nextLine().split(","));
    }
  }
}
