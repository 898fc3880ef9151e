package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import com.azure.core.credential.AccessToken;
import com.azure.core.credential.TokenCredential;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.exception.ResourceNotFoundException;
import com.azure.core.models.MessageContent;
import com.azure.core.util.serializer.TypeReference;
import com.azure.data.schemaregistry.SchemaRegistryClient;
import com.azure.data.schemaregistry.SchemaRegistryClientBuilder;
import com.azure.data.schemaregistry.apacheavro.SchemaRegistryApacheAvroSerializer;
import com.azure.data.schemaregistry.apacheavro.SchemaRegistryApacheAvroSerializerBuilder;
import com.azure.data.schemaregistry.models.SchemaFormat;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.OffsetDateTime;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import reactor.core.publisher.Mono;

/** Azure's client and its Avro serializer. Arguments: host and port of a registry behind TLS, its URL without. */
public final class Azure {
  private static final String GROUP = "readings";
  private static final String NAME = "plant.Reading";
  private static final TypeReference<MessageContent> MESSAGE = TypeReference.createInstance(MessageContent.class);
  private static final TypeReference<GenericRecord> RECORD = TypeReference.createInstance(GenericRecord.class);
  private static final Schema ONE =
      SchemaBuilder.record("Reading").namespace("plant").fields().requiredInt("a").endRecord();
  private static final Schema TWO = SchemaBuilder.record("Reading").namespace("plant").fields()
      .requiredInt("a").name("b").type().stringType().stringDefault("none").endRecord();
  private static final Schema BAD =
      SchemaBuilder.record("Reading").namespace("plant").fields().requiredString("a").endRecord();

  private final SchemaRegistryClientBuilder builder;
  private final String server;

  private Azure(String host, String server) {
    TokenCredential anybody = context -> Mono.just(new AccessToken("token", OffsetDateTime.now().plusHours(1)));
    this.builder = new SchemaRegistryClientBuilder().fullyQualifiedNamespace(host).credential(anybody);
    this.server = server;
  }

  public static void main(String[] arguments) throws Exception {
    var azure = new Azure(arguments[0], arguments[1]);
    azure.group("PUT", "{\"schemaType\":\"Avro\",\"schemaCompatibility\":\"Backward\"}");
    azure.schemas(azure.builder.buildClient());
    azure.group("DELETE", "");
    azure.group("PUT", "{\"schemaType\":\"Avro\",\"schemaCompatibility\":\"Backward\"}");
    azure.records();
    azure.group("DELETE", "");
    refused("a deleted group", HttpResponseException.class,
        () -> azure.builder.buildClient().getSchema(GROUP, NAME, 1));
    System.exit(0);
  }

  /** The client has no call for this, the service's REST API has. */
  private void group(String method, String body) throws Exception {
    var uri = URI.create(server + "/$schemagroups/" + GROUP + "?api-version=2022-10");
    var request = HttpRequest.newBuilder(uri).method(method, BodyPublishers.ofString(body))
        .header("Content-Type", "application/json").build();
    var answer = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
    equal(method + " group", 2, answer.statusCode() / 100);
  }

  private void schemas(SchemaRegistryClient client) {
    step("register and evolve");
    var one = client.registerSchema(GROUP, NAME, ONE.toString(), SchemaFormat.AVRO);
    var two = client.registerSchema(GROUP, NAME, TWO.toString(), SchemaFormat.AVRO);
    // A schema that was deleted and made again goes on counting, so the first number may be above 1.
    equal("versions", one.getVersion() + 1, two.getVersion());
    equal("names", List.of(GROUP, NAME), List.of(two.getGroupName(), two.getName()));
    equal("format", SchemaFormat.AVRO, two.getFormat());
    equal("the first again", one.getId(),
        client.registerSchema(GROUP, NAME, ONE.toString(), SchemaFormat.AVRO).getId());
    var error = refused("incompatible", HttpResponseException.class,
        () -> client.registerSchema(GROUP, NAME, BAD.toString(), SchemaFormat.AVRO));
    equal("status", 409, error.getResponse().getStatusCode());
    refused("no such group", HttpResponseException.class,
        () -> client.registerSchema("nowhere", NAME, ONE.toString(), SchemaFormat.AVRO));
    step("read");
    equal("by id", TWO.toString(), client.getSchema(two.getId()).getDefinition());
    var first = client.getSchema(GROUP, NAME, one.getVersion());
    equal("by version", List.of(ONE.toString(), one.getId()),
        List.of(first.getDefinition(), first.getProperties().getId()));
    equal("by its text", two.getId(),
        client.getSchemaProperties(GROUP, NAME, TWO.toString(), SchemaFormat.AVRO).getId());
    refused("an unknown id", ResourceNotFoundException.class, () -> client.getSchema("0123456789abcdef"));
  }

  private void records() {
    step("encode and decode");
    var old = new GenericData.Record(ONE);
    old.put("a", 42);
    var message = serializer(true).serialize(old, MESSAGE);
    equal("content type", true, message.getContentType().startsWith("avro/binary+"));
    equal("read", old, serializer(false).deserialize(message, RECORD));
    var changed = new GenericData.Record(TWO);
    changed.put("a", 43);
    changed.put("b", new org.apache.avro.util.Utf8("x"));
    var second = serializer(true).serialize(changed, MESSAGE);
    equal("read", changed, serializer(false).deserialize(second, RECORD));
    equal("the first still", old, serializer(false).deserialize(message, RECORD));
    var bad = new GenericData.Record(BAD);
    bad.put("a", "text");
    refused("incompatible", HttpResponseException.class, () -> serializer(true).serialize(bad, MESSAGE));
  }

  private SchemaRegistryApacheAvroSerializer serializer(boolean registers) {
    return new SchemaRegistryApacheAvroSerializerBuilder().schemaRegistryClient(builder.buildAsyncClient())
        .schemaGroup(GROUP).autoRegisterSchemas(registers).buildSerializer();
  }
}
