package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.rocketmq.schema.registry.client.SchemaRegistryClient;
import org.apache.rocketmq.schema.registry.client.config.AvroSerdeConfig;
import org.apache.rocketmq.schema.registry.client.config.JsonSerdeConfig;
import org.apache.rocketmq.schema.registry.client.exceptions.SerializationException;
import org.apache.rocketmq.schema.registry.client.serde.avro.GenericAvroSerde;
import org.apache.rocketmq.schema.registry.client.serde.avro.SpecificAvroSerde;
import org.apache.rocketmq.schema.registry.client.serde.json.JsonSerde;
import org.apache.rocketmq.schema.registry.common.dto.RegisterSchemaRequest;
import org.apache.rocketmq.schema.registry.common.model.Compatibility;
import org.apache.rocketmq.schema.registry.common.model.SchemaType;

/** Messages with a record's id in front: Avro with a generic reader and with classes, JSON. */
final class Messages {
  private static final int AVRO_HEADER = 9;
  private static final int JSON_HEADER = 8;
  private static final byte LENGTH_OF_ID = 0x10;

  private final SchemaRegistryClient client;

  Messages(SchemaRegistryClient client) {
    this.client = client;
  }

  void tell() throws Exception {
    avro();
    classes();
    json();
  }

  private void avro() throws Exception {
    step("Avro messages");
    var first = client.registerSchema("events", "event", RocketMq.avro(RocketMq.ONE)).getRecordId();
    try (var serde = new GenericAvroSerde(client)) {
      serde.configure(new HashMap<>(Map.of(AvroSerdeConfig.USE_GENERIC_DATUM_READER, true)));
      var old = order(RocketMq.ONE);
      var message = serde.serializer().serialize("events", old);
      equal("header", LENGTH_OF_ID, message[0]);
      equal("record", first, ByteBuffer.wrap(message).getLong(1));
      equal("bytes", AVRO_HEADER + 1, message.length);
      equal("read", old, serde.deserializer().deserialize("events", message));
      refused("a schema that is not registered", SerializationException.class,
          () -> serde.serializer().serialize("events", order(RocketMq.TWO)));
      client.updateSchema("events", "event", RocketMq.update(RocketMq.TWO));
      var latest = serde.serializer().serialize("events", order(RocketMq.TWO));
      equal("the second", order(RocketMq.TWO), serde.deserializer().deserialize("events", latest));
      equal("the first still", old, serde.deserializer().deserialize("events", message));
    }
    client.deleteSchema("default", "default", "events");
  }

  private void classes() throws Exception {
    step("Avro messages of a class, which also reads what was written before it had its second field");
    var before = SchemaBuilder.record("Payment").namespace("interop").fields().requiredInt("amount").endRecord();
    client.registerSchema("payments", "payment", RocketMq.avro(before));
    client.updateSchema("payments", "payment", RocketMq.update(Payment.SCHEMA$));
    try (var generic = new GenericAvroSerde(client); var serde = new SpecificAvroSerde<Payment>(client)) {
      serde.configure(new HashMap<>());
      var message = serde.serializer().serialize("payments", new Payment(9, "USD"));
      equal("read", new Payment(9, "USD"), serde.deserializer().deserialize("payments", message));
      var old = generic.serializer().serialize("payments", order(before));
      equal("read", new Payment(42, "EUR"), serde.deserializer().deserialize("payments", old));
    }
    client.deleteSchema("default", "default", "payments");
  }

  private void json() throws Exception {
    step("JSON messages");
    var schema = "{\"type\":\"object\",\"properties\":{\"amount\":{\"type\":\"integer\"}}}";
    var request = new RegisterSchemaRequest(schema, SchemaType.JSON, "ann", Compatibility.NONE, "");
    var id = client.registerSchema("texts", "text", request).getRecordId();
    try (var serde = new JsonSerde<Order>(client)) {
      serde.configure(new HashMap<>(Map.of(JsonSerdeConfig.DESERIALIZE_TARGET_TYPE, Order.class)));
      var message = serde.serializer().serialize("texts", new Order(7));
      equal("record", id, ByteBuffer.wrap(message).getLong());
      equal("bytes", JSON_HEADER + "{\"amount\":7}".length(), message.length);
      equal("read", 7, serde.deserializer().deserialize("texts", message).amount);
    }
    client.deleteSchema("default", "default", "texts");
  }

  private static GenericRecord order(Schema schema) {
    var record = new GenericData.Record(schema);
    record.put("amount", 42);
    if (schema == RocketMq.TWO) {
      record.put("currency", new org.apache.avro.util.Utf8("USD"));
    }
    return record;
  }

  /** What a JSON message holds. */
  public static final class Order {
    public int amount;

    public Order() {}

    Order(int amount) {
      this.amount = amount;
    }
  }
}
