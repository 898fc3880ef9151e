package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import java.util.function.IntFunction;
import javax.ws.rs.client.ClientBuilder;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.springframework.cloud.schema.registry.SchemaReference;
import org.springframework.cloud.schema.registry.client.ConfluentSchemaRegistryClient;
import pl.allegro.tech.hermes.api.RawSchema;
import pl.allegro.tech.hermes.api.TopicName;
import pl.allegro.tech.hermes.schema.SchemaVersion;
import pl.allegro.tech.hermes.schema.confluent.SchemaRegistryRawSchemaClient;

/**
 * Registers, evolves, encodes, decodes and deletes with each client. Arguments: the client, the URL.
 */
public final class Confluent {
  private static final String ONE =
      "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"}]}";
  private static final String TWO =
      "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"},"
          + "{\"name\":\"b\",\"type\":\"string\",\"default\":\"\"}]}";
  private static final String BAD =
      "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"string\"}]}";

  private Confluent() {}

  public static void main(String[] arguments) throws Exception {
    switch (arguments[0]) {
      case "hermes" -> hermes(arguments[1]);
      case "spring" -> spring(arguments[1]);
      case "flink" -> FlinkRecords.tell(arguments[1]);
      default -> throw new IllegalArgumentException(arguments[0]);
    }
  }

  /** The client of the Hermes broker, of the time when answers had no members it does not know: subjects are topics. */
  private static void hermes(String url) throws Exception {
    var client = new SchemaRegistryRawSchemaClient(ClientBuilder.newClient(), URI.create(url));
    var topic = new TopicName("hermes.group", "orders");
    step("register and evolve");
    equal("no versions yet", List.of(), client.getVersions(topic));
    client.registerSchema(topic, RawSchema.valueOf(ONE));
    client.registerSchema(topic, RawSchema.valueOf(TWO));
    client.registerSchema(topic, RawSchema.valueOf(ONE));
    equal("versions", List.of(2, 1), client.getVersions(topic).stream().map(SchemaVersion::value).toList());
    equal("the latest", TWO, client.getLatestSchema(topic).orElseThrow().value());
    equal("a version there is not", false, client.getSchema(topic, SchemaVersion.valueOf(9)).isPresent());
    refused("incompatible", RuntimeException.class, () -> client.registerSchema(topic, RawSchema.valueOf(BAD)));
    refused("no schema", RuntimeException.class, () -> client.registerSchema(topic, RawSchema.valueOf("{")));
    roundTrip(1, version -> client.getSchema(topic, SchemaVersion.valueOf(version)).orElseThrow().value());
    delete(url, "hermes.group.orders");
    equal("none is left", List.of(), client.getVersions(topic));
  }

  /** The client of Spring Cloud Stream for this API. */
  private static void spring(String url) throws Exception {
    var client = new ConfluentSchemaRegistryClient();
    client.setEndpoint(url);
    var first = client.register("spring-value", "avro", ONE);
    var second = client.register("spring-value", "avro", TWO);
    step("register and evolve");
    equal("the first", 1, first.getSchemaReference().getVersion());
    equal("the second", 2, second.getSchemaReference().getVersion());
    equal("the first again", first.getId(), client.register("spring-value", "avro", ONE).getId());
    equal("by version", TWO, client.fetch(new SchemaReference("spring-value", 2, "avro")));
    equal("by id", TWO, client.fetch(second.getId()));
    refused("incompatible", RuntimeException.class, () -> client.register("spring-value", "avro", BAD));
    roundTrip(first.getId(), client::fetch);
    delete(url, "spring-value");
    refused("a deleted one", RuntimeException.class, () -> client.fetch(new SchemaReference("spring-value", 2, "avro")));
  }

  private static void roundTrip(int id, IntFunction<String> schemas) throws Exception {
    step("encode and decode");
    var record = new GenericData.Record(new Schema.Parser().parse(ONE));
    record.put("a", 42);
    var read = Records.decode(Records.encode(id, record), schemas, new Schema.Parser().parse(TWO));
    equal("as written", 42, read.get("a"));
    equal("the default", "", read.get("b").toString());
  }

  /** Neither client deletes subjects. */
  private static void delete(String url, String subject) throws Exception {
    var request = HttpRequest.newBuilder(URI.create(url + "/subjects/" + subject)).DELETE().build();
    var answer = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
    step("delete");
    equal("answer", "200 [1,2]", answer.statusCode() + " " + answer.body());
  }
}
