package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import io.confluent.kafka.schemaregistry.avro.AvroSchema;
import io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.SchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.rest.entities.Config;
import io.confluent.kafka.schemaregistry.client.rest.entities.Metadata;
import io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import io.confluent.kafka.schemaregistry.client.rest.entities.SubjectVersion;
import io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;

/** Confluent's own client (release 7.7.0): everything it can ask. */
final class OwnClient {
  private static final String SUBJECT = "orders/eu + 1%-value";
  private static final AvroSchema ONE = order("{\"name\":\"amount\",\"type\":\"int\"}");
  private static final AvroSchema TWO =
      order("{\"name\":\"amount\",\"type\":\"int\"},{\"name\":\"currency\",\"type\":\"string\",\"default\":\"EUR\"}");
  private static final AvroSchema BAD = order("{\"name\":\"amount\",\"type\":\"string\"}");

  private final String url;
  private final SchemaRegistryClient client;

  OwnClient(String url) {
    this.url = url;
    this.client = fresh();
  }

  void tell() throws Exception {
    settings();
    var first = client.register(SUBJECT, ONE);
    var second = client.register(SUBJECT, TWO);
    read(first, second);
    references();
    metadata();
    delete(first);
  }

  private void settings() throws IOException, RestClientException {
    step("settings");
    equal("everywhere", "BACKWARD", client.getCompatibility(null));
    equal("changed", "FULL_TRANSITIVE", client.updateCompatibility(SUBJECT, "FULL_TRANSITIVE"));
    equal("of the subject", "FULL_TRANSITIVE", client.getCompatibility(SUBJECT));
    var config = new Config("BACKWARD");
    config.setCompatibilityGroup("release");
    equal("with a group", config, client.updateConfig("grouped", config));
    equal("with a group", "release", client.getConfig("grouped").getCompatibilityGroup());
    client.deleteConfig("grouped");
    equal("mode", "READWRITE", client.getMode());
    equal("read only", "READONLY", client.setMode("READONLY", SUBJECT));
    equal("a write then", 42205,
        refused("write", RestClientException.class, () -> client.register(SUBJECT, ONE)).getErrorCode());
    client.deleteMode(SUBJECT);
    equal("mode of one that has none", 40409,
        refused("mode", RestClientException.class, () -> fresh().getMode(SUBJECT)).getErrorCode());
  }

  private void read(int first, int second) throws IOException, RestClientException {
    step("register and evolve");
    var other = fresh();
    equal("the first again", first, other.register(SUBJECT, ONE));
    equal("normalized", first, other.registerWithResponse(SUBJECT, ONE, true).getId());
    equal("versions", List.of(1, 2), other.getAllVersions(SUBJECT));
    equal("compatible", true, other.testCompatibility(SUBJECT, TWO));
    equal("not compatible", false, other.testCompatibility(SUBJECT, BAD));
    equal("with reasons", false, other.testCompatibilityVerbose(SUBJECT, BAD).isEmpty());
    equal("refused", 409,
        refused("incompatible", RestClientException.class, () -> client.register(SUBJECT, BAD)).getStatus());
    equal("id", second, other.getId(SUBJECT, TWO));
    equal("version", 2, other.getVersion(SUBJECT, TWO));
    equal("by id", TWO, other.getSchemaById(second));
    equal("by subject and id", TWO, other.getSchemaBySubjectAndId(SUBJECT, second));
    equal("by version", ONE.canonicalString(), other.getByVersion(SUBJECT, 1, false).getSchema());
    equal("the latest", second, other.getLatestSchemaMetadata(SUBJECT).getId());
    equal("metadata", first, other.getSchemaMetadata(SUBJECT, 1).getId());
    equal("subjects", List.of(SUBJECT), List.copyOf(other.getAllSubjects()));
    equal("by prefix", List.of(SUBJECT), List.copyOf(other.getAllSubjectsByPrefix("orders")));
    equal("subjects of an id", Set.of(SUBJECT), Set.copyOf(other.getAllSubjectsById(first)));
    equal("versions of an id", Set.of(new SubjectVersion(SUBJECT, 1)), Set.copyOf(other.getAllVersionsById(first)));
    equal("schemas", List.of(ONE, TWO), other.getSchemas("orders", false, false));
    equal("no such id", 40403, refused("id", RestClientException.class, () -> other.getSchemaById(9999)).getErrorCode());
    equal("no such subject", 40401,
        refused("subject", RestClientException.class, () -> other.getLatestSchemaMetadata("none")).getErrorCode());
  }

  private void references() throws IOException, RestClientException {
    step("references");
    client.register("money", new AvroSchema("{\"type\":\"enum\",\"name\":\"Money\",\"symbols\":[\"EUR\",\"USD\"]}"));
    var text = "{\"type\":\"record\",\"name\":\"Bill\",\"fields\":[{\"name\":\"money\",\"type\":\"Money\"}]}";
    var references = List.of(new SchemaReference("Money", "money", 1));
    var parsed = client.parseSchema("AVRO", text, references).orElseThrow();
    var id = client.register("bill", parsed);
    equal("references", references, fresh().getSchemaById(id).references());
    equal("one that is referred to", 42206,
        refused("delete", RestClientException.class, () -> client.deleteSchemaVersion("money", "1")).getErrorCode());
    client.deleteSubject("bill");
    client.deleteSubject("bill", true);
    equal("then", List.of(1), client.deleteSubject("money"));
    client.deleteSubject("money", true);
  }

  private void metadata() throws IOException, RestClientException {
    step("metadata");
    var labels = new Metadata(Map.of(), Map.of("release", "2024"), Set.of());
    var tagged = new AvroSchema(ONE.canonicalString(), List.of(), Map.of(), labels, null, null, false);
    var id = client.register("tagged", tagged);
    equal("by its label", id, client.getLatestWithMetadata("tagged", Map.of("release", "2024"), false).getId());
    equal("label", Optional.of("2024"), Optional.ofNullable(
        fresh().getSchemaBySubjectAndId("tagged", id).metadata().getProperties().get("release")));
    client.deleteSubject("tagged");
    client.deleteSubject("tagged", true);
  }

  private void delete(int first) throws IOException, RestClientException {
    step("delete");
    equal("a version", 2, client.deleteSchemaVersion(SUBJECT, "2"));
    equal("left", List.of(1), fresh().getAllVersions(SUBJECT));
    equal("deleted ones too", List.of(1, 2), fresh().getAllVersions(SUBJECT, true));
    equal("for good", 2, client.deleteSchemaVersion(SUBJECT, "2", true));
    equal("the subject", List.of(1), client.deleteSubject(SUBJECT));
    equal("subjects", List.of(), List.copyOf(fresh().getAllSubjects()));
    equal("still readable", ONE, fresh().getSchemaById(first));
    equal("the subject for good", List.of(1), client.deleteSubject(SUBJECT, true));
    equal("gone", 40403, refused("id", RestClientException.class, () -> fresh().getSchemaById(first)).getErrorCode());
    client.close();
  }

  /** A client that has cached nothing yet. */
  private SchemaRegistryClient fresh() {
    return new CachedSchemaRegistryClient(url, 100);
  }

  private static AvroSchema order(String fields) {
    return new AvroSchema(
        "{\"type\":\"record\",\"name\":\"Order\",\"namespace\":\"shop\",\"fields\":[" + fields + "]}");
  }
}
