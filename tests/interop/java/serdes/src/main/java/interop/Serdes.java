package interop;

import static interop.Story.equal;
import static interop.Story.step;

import io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.SchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.rest.entities.Rule;
import io.confluent.kafka.schemaregistry.client.rest.entities.RuleKind;
import io.confluent.kafka.schemaregistry.client.rest.entities.RuleMode;
import io.confluent.kafka.serializers.KafkaAvroDeserializer;
import io.confluent.kafka.serializers.KafkaAvroSerializer;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericRecord;

/** Confluent's own client and serializers. Arguments: the story, the URL. */
public final class Serdes {
  private static final int CACHED = 100;

  private final String url;

  Serdes(String url) {
    this.url = url;
  }

  public static void main(String[] arguments) throws Exception {
    var serdes = new Serdes(arguments[1]);
    switch (arguments[0]) {
      case "client" -> new OwnClient(arguments[1]).tell();
      case "avro" -> new AvroRecords(serdes).tell();
      case "rules" -> new RuleSets(serdes).tell();
      case "encryption" -> new Encryption(serdes).tell();
      case "connect" -> new Connect(serdes).tell();
      default -> throw new IllegalArgumentException(arguments[0]);
    }
  }

  /** A client that has cached nothing yet. */
  SchemaRegistryClient client() {
    return new CachedSchemaRegistryClient(url, CACHED);
  }

  /** Settings of a serializer, deserializer or converter: the URL and these. */
  Map<String, Object> settings(Map<String, ?> more) {
    var settings = new HashMap<String, Object>(more);
    settings.put("schema.registry.url", url);
    return settings;
  }

  byte[] write(String topic, Object record, Map<String, ?> more) {
    try (var serializer = new KafkaAvroSerializer()) {
      serializer.configure(settings(more), false);
      return serializer.serialize(topic, record);
    }
  }

  Object read(String topic, byte[] data, Map<String, ?> more) {
    try (var deserializer = new KafkaAvroDeserializer()) {
      deserializer.configure(settings(more), false);
      return deserializer.deserialize(topic, data);
    }
  }

  GenericRecord read(String topic, byte[] data, Schema reader) {
    try (var deserializer = new KafkaAvroDeserializer()) {
      deserializer.configure(settings(Map.of()), false);
      return (GenericRecord) deserializer.deserialize(topic, data, reader);
    }
  }

  void delete(String subject) throws Exception {
    step("delete " + subject);
    var client = client();
    var versions = client.deleteSubject(subject);
    equal("deleted for good", versions, client.deleteSubject(subject, true));
    equal("left", false, client.getAllSubjects().contains(subject));
  }

  static Rule rule(String name, RuleKind kind, RuleMode mode, String type, String expression) {
    return new Rule(name, null, kind, mode, type, null, null, expression, null, null, false);
  }

  static Rule rule(String name, String type, String tag, Map<String, String> parameters) {
    return new Rule(
        name, null, RuleKind.TRANSFORM, RuleMode.WRITEREAD, type, Set.of(tag), parameters, null, null, "ERROR,NONE", false);
  }
}
