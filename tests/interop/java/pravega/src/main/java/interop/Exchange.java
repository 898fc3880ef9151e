package interop;

import static interop.Story.equal;

import com.fasterxml.jackson.databind.JsonNode;
import com.google.protobuf.DynamicMessage;
import io.pravega.client.stream.Serializer;
import io.pravega.schemaregistry.client.SchemaRegistryClient;
import io.pravega.schemaregistry.contract.data.Compatibility;
import io.pravega.schemaregistry.contract.data.SerializationFormat;
import io.pravega.schemaregistry.serializer.avro.schemas.AvroSchema;
import io.pravega.schemaregistry.serializer.json.schemas.JSONSchema;
import io.pravega.schemaregistry.serializer.protobuf.schemas.ProtobufSchema;
import io.pravega.schemaregistry.serializer.shared.codec.Codecs;
import io.pravega.schemaregistry.serializers.SerializerFactory;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;

/** Events for, and from, programs in other languages: orders of 42 in every format, compressed in every way. */
final class Exchange {
  private static final String GROUP = "exchange";
  private static final int AMOUNT = 42;

  private final SchemaRegistryClient client;

  Exchange(SchemaRegistryClient client) {
    this.client = client;
  }

  /** Prints a line for each event: "event", its format, its codec, its bytes in hexadecimal. */
  void write() throws Exception {
    for (var codec : Codecs.values()) {
      GenericRecord record = new GenericRecordBuilder(AvroStory.ONE).set("amount", AMOUNT).build();
      var config = Pravega.config(client, GROUP).registerSchema(true).registerCodec(codec != Codecs.None)
          .createGroup(SerializationFormat.Any, Compatibility.allowAny(), true).encoder(codec.getCodec()).build();
      var avro = SerializerFactory.avroSerializer(config, AvroSchema.ofRecord(AvroStory.ONE));
      print("avro", codec, avro, record);
      var json = JSONSchema.of("Order", JsonStory.TWO, JsonStory.Order.class);
      print("json", codec, SerializerFactory.jsonSerializer(config, json), new JsonStory.Order(AMOUNT, "EUR"));
      ProtobufSchema<DynamicMessage> proto = ProtobufSchema.of("shop.Order", ProtobufStory.ONE);
      var order = ProtobufStory.order(ProtobufStory.ONE, AMOUNT);
      print("protobuf", codec, SerializerFactory.protobufSerializer(config, proto), order);
    }
  }

  private static <T> void print(String format, Codecs codec, Serializer<T> serializer, T value) {
    var event = serializer.serialize(value);
    var bytes = Arrays.copyOfRange(event.array(), event.position(), event.limit());
    System.out.println("event " + format + " " + codec + " " + HexFormat.of().formatHex(bytes));
  }

  /** Reads events that somebody else made, and removes the group. */
  void read(List<String> events) {
    var reader = SerializerFactory.genericDeserializer(Pravega.config(client, GROUP).build());
    for (var event : events) {
      equal(event, AMOUNT, amount(reader.deserialize(ByteBuffer.wrap(HexFormat.of().parseHex(event)))));
    }
    client.removeGroup(GROUP);
  }

  private static Object amount(Object value) {
    if (value instanceof GenericRecord record) {
      return record.get("amount");
    }
    if (value instanceof DynamicMessage message) {
      return ProtobufStory.amount(message);
    }
    return ((JsonNode) value).get("amount").asInt();
  }
}
