package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import com.fasterxml.jackson.databind.JsonNode;
import io.pravega.client.stream.Serializer;
import io.pravega.schemaregistry.client.SchemaRegistryClient;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions.ResourceNotFoundException;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions.SchemaValidationFailedException;
import io.pravega.schemaregistry.contract.data.Compatibility;
import io.pravega.schemaregistry.contract.data.SerializationFormat;
import io.pravega.schemaregistry.serializer.json.impl.JsonSerializerFactory;
import io.pravega.schemaregistry.serializer.json.schemas.JSONSchema;
import io.pravega.schemaregistry.serializer.shared.codec.Codecs;
import java.util.List;
import java.util.Map;

/** JSON: as the story of Avro; readers take a class, a tree or the text. */
final class JsonStory {
  static final String ONE = schema("\"amount\":{\"type\":\"integer\"}");
  static final String TWO = schema("\"amount\":{\"type\":\"integer\"},\"currency\":{\"type\":\"string\"}");
  private static final String BAD = schema("\"amount\":{\"type\":\"string\"}");
  private static final String GROUP = "json-orders";

  private final SchemaRegistryClient client;

  JsonStory(SchemaRegistryClient client) {
    this.client = client;
  }

  void tell() {
    step("register and evolve");
    client.addGroup(GROUP, Pravega.properties(SerializationFormat.Json, Compatibility.backward(), false));
    var first = writer(ONE, Codecs.None).serialize(new Order(42, null));
    equal("the first", 42, typed(ONE).deserialize(first.duplicate()).amount);
    var second = writer(TWO, Codecs.None).serialize(new Order(43, "USD"));
    equal("encoding ids", List.of(0, 1), List.of(Pravega.encodingId(first), Pravega.encodingId(second)));
    refused("amounts that are texts", SchemaValidationFailedException.class, () -> writer(BAD, Codecs.None));
    step("read with the second schema, as a tree, as a text");
    equal("the first with the second", 42, typed(TWO).deserialize(first.duplicate()).amount);
    equal("the second", "USD", typed(TWO).deserialize(second.duplicate()).currency);
    for (var schema : List.of(ONE, BAD)) {
      refused("a reader that cannot read the latest", IllegalArgumentException.class, () -> typed(schema));
    }
    var config = Pravega.config(client, GROUP).build();
    JsonNode tree = JsonSerializerFactory.genericDeserializer(config).deserialize(second.duplicate());
    equal("tree", 43, tree.get("amount").asInt());
    var text = JsonSerializerFactory.deserializeAsString(config).deserialize(second.duplicate());
    equal("text", "{\"amount\":43,\"currency\":\"USD\"}", text.replaceAll("\\s", ""));
    step("compressed, read as a tree: into a class, this client reads what is compressed as it stands");
    for (var codec : List.of(Codecs.GzipCompressor, Codecs.SnappyCompressor)) {
      var event = writer(TWO, codec).serialize(new Order(44, "CHF"));
      tree = JsonSerializerFactory.genericDeserializer(config).deserialize(event);
      equal(codec.name(), "CHF", tree.get("currency").asText());
    }
    classes();
    step("delete");
    client.deleteSchemaVersion(GROUP, Pravega.version("Order", "Json", 1, 1));
    equal("left", List.of(ONE), client.getSchemaVersions(GROUP, "Order").stream()
        .map(row -> Pravega.text(row.getSchemaInfo())).toList());
    equal("still readable", "USD", typed(ONE).deserialize(second).currency);
    client.removeGroup(GROUP);
    refused("the group", ResourceNotFoundException.class, () -> client.getSchemas(GROUP));
  }

  private void classes() {
    step("schemas derived from classes, two of them in one group");
    var config = Pravega.config(client, "json-classes").registerSchema(true)
        .createGroup(SerializationFormat.Json, Compatibility.backward(), true).build();
    Map<Class<? extends Object>, JSONSchema<Object>> schemas = Map.of(
        Order.class, JSONSchema.ofBaseType(Order.class, Object.class),
        Parcel.class, JSONSchema.ofBaseType(Parcel.class, Object.class));
    var writer = JsonSerializerFactory.multiTypeSerializer(config, schemas);
    var reader = JsonSerializerFactory.multiTypeDeserializer(config, schemas);
    var order = writer.serialize(new Order(1, "EUR"));
    var parcel = writer.serialize(new Parcel());
    equal("order", 1, ((Order) reader.deserialize(order)).amount);
    equal("parcel", 2.5, ((Parcel) reader.deserialize(parcel)).weight);
    client.removeGroup("json-classes");
  }

  private Serializer<Order> writer(String schema, Codecs codec) {
    var config = Pravega.config(client, GROUP).registerSchema(true)
        .registerCodec(codec != Codecs.None).encoder(codec.getCodec()).build();
    return JsonSerializerFactory.serializer(config, JSONSchema.of("Order", schema, Order.class));
  }

  private Serializer<Order> typed(String schema) {
    var config = Pravega.config(client, GROUP).build();
    return JsonSerializerFactory.deserializer(config, JSONSchema.of("Order", schema, Order.class));
  }

  private static String schema(String properties) {
    return "{\"type\":\"object\",\"title\":\"Order\",\"properties\":{" + properties
        + "},\"required\":[\"amount\"],\"additionalProperties\":false}";
  }

  /** What the events hold. */
  public static class Order {
    public int amount;
    public String currency;

    public Order() {}

    Order(int amount, String currency) {
      this.amount = amount;
      this.currency = currency;
    }
  }

  /** What events of the other type hold. */
  public static class Parcel {
    public double weight = 2.5;
  }
}
