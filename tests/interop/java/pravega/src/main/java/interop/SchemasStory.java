package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import com.google.common.collect.ImmutableMap;
import io.pravega.schemaregistry.client.SchemaRegistryClient;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions.CodecTypeNotRegisteredException;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions.MalformedSchemaException;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions.ResourceNotFoundException;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions.SchemaValidationFailedException;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions.SerializationMismatchException;
import io.pravega.schemaregistry.contract.data.CodecType;
import io.pravega.schemaregistry.contract.data.Compatibility;
import io.pravega.schemaregistry.contract.data.EncodingId;
import io.pravega.schemaregistry.contract.data.EncodingInfo;
import io.pravega.schemaregistry.contract.data.SchemaInfo;
import io.pravega.schemaregistry.contract.data.SchemaWithVersion;
import io.pravega.schemaregistry.contract.data.SerializationFormat;
import io.pravega.schemaregistry.contract.data.VersionInfo;
import io.pravega.schemaregistry.serializer.avro.schemas.AvroSchema;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;

/** Schemas of a group: types and their versions, questions, codecs and encodings, history, deletion. */
final class SchemasStory {
  private static final String GROUP = "schemas";
  private static final SchemaInfo ONE = info(AvroStory.ONE);
  private static final SchemaInfo TWO = info(AvroStory.TWO);
  private static final SchemaInfo BAD = info(AvroStory.BAD);
  private static final SchemaInfo OTHER =
      info(SchemaBuilder.record("Parcel").namespace("shop").fields().requiredDouble("weight").endRecord());
  private static final VersionInfo FIRST = Pravega.version("shop.Order", "Avro", 0, 0);
  private static final VersionInfo PARCEL = Pravega.version("shop.Parcel", "Avro", 0, 1);
  private static final VersionInfo SECOND = Pravega.version("shop.Order", "Avro", 1, 2);
  private static final CodecType ZSTD = new CodecType("zstd", ImmutableMap.of("level", "3"));

  private final SchemaRegistryClient client;

  SchemasStory(SchemaRegistryClient client) {
    this.client = client;
  }

  void tell() {
    client.addGroup(GROUP, Pravega.properties(SerializationFormat.Avro, Compatibility.backward(), true));
    versions();
    questions();
    encodings();
    history();
    references();
    deletion();
    client.removeGroup(GROUP);
  }

  private void versions() {
    step("types and their versions");
    equal("the first", FIRST, client.addSchema(GROUP, ONE));
    equal("another type", PARCEL, client.addSchema(GROUP, OTHER));
    equal("the second", SECOND, client.addSchema(GROUP, TWO));
    equal("the first again", FIRST, client.addSchema(GROUP, ONE));
    refused("incompatible", SchemaValidationFailedException.class, () -> client.addSchema(GROUP, BAD));
    var json = new SchemaInfo("x", SerializationFormat.Json, bytes("{}"), ImmutableMap.of());
    refused("another format", SerializationMismatchException.class, () -> client.addSchema(GROUP, json));
    var broken = new SchemaInfo("x", SerializationFormat.Avro, bytes("{"), ImmutableMap.of());
    refused("malformed", MalformedSchemaException.class, () -> client.addSchema(GROUP, broken));
    refused("no such group", ResourceNotFoundException.class, () -> client.addSchema("none", ONE));
    var orders = List.of(new SchemaWithVersion(ONE, FIRST), new SchemaWithVersion(TWO, SECOND));
    equal("of a type", orders, client.getSchemaVersions(GROUP, "shop.Order"));
    equal("all", List.of(FIRST, PARCEL, SECOND),
        client.getSchemaVersions(GROUP, null).stream().map(SchemaWithVersion::getVersionInfo).toList());
    equal("latest of a type", orders.get(1), client.getLatestSchemaVersion(GROUP, "shop.Order"));
    equal("latest of all", orders.get(1), client.getLatestSchemaVersion(GROUP, null));
    equal("latest of each", List.of(PARCEL, SECOND), client.getSchemas(GROUP).stream()
        .map(SchemaWithVersion::getVersionInfo).sorted(java.util.Comparator.comparing(VersionInfo::getId)).toList());
    equal("by version", OTHER, client.getSchemaForVersion(GROUP, PARCEL));
    refused("no such version", ResourceNotFoundException.class,
        () -> client.getSchemaForVersion(GROUP, Pravega.version("shop.Order", "Avro", 7, 7)));
  }

  private void questions() {
    step("questions");
    equal("version", SECOND, client.getVersionForSchema(GROUP, TWO));
    refused("not registered", ResourceNotFoundException.class, () -> client.getVersionForSchema(GROUP, BAD));
    equal("valid", true, client.validateSchema(GROUP, TWO));
    equal("not valid", false, client.validateSchema(GROUP, BAD));
    equal("can read", true, client.canReadUsing(GROUP, TWO));
    equal("cannot read", false, client.canReadUsing(GROUP, BAD));
  }

  private void encodings() {
    step("codecs and encodings");
    equal("codecs", List.of(), client.getCodecTypes(GROUP));
    client.addCodecType(GROUP, ZSTD);
    client.addCodecType(GROUP, new CodecType("zstd", ImmutableMap.of("level", "9")));
    equal("codecs", List.of(ZSTD), client.getCodecTypes(GROUP));
    equal("plain", new EncodingId(0), client.getEncodingId(GROUP, SECOND, ""));
    equal("compressed", new EncodingId(1), client.getEncodingId(GROUP, SECOND, "zstd"));
    equal("plain", new EncodingId(0), client.getEncodingId(GROUP, SECOND, ""));
    refused("no such codec", CodecTypeNotRegisteredException.class,
        () -> client.getEncodingId(GROUP, SECOND, "lz4"));
    equal("info", new EncodingInfo(SECOND, TWO, ZSTD), client.getEncodingInfo(GROUP, new EncodingId(1)));
    equal("info", new EncodingInfo(SECOND, TWO, CodecType.NONE), client.getEncodingInfo(GROUP, new EncodingId(0)));
    refused("no such encoding", ResourceNotFoundException.class,
        () -> client.getEncodingInfo(GROUP, new EncodingId(99)));
    refused("no such group", ResourceNotFoundException.class, () -> client.addCodecType("none", ZSTD));
  }

  private void history() {
    step("history");
    client.updateCompatibility(GROUP, Compatibility.full(), null);
    var history = client.getGroupHistory(GROUP);
    equal("versions", List.of(FIRST, PARCEL, SECOND), history.stream().map(row -> row.getVersionInfo()).toList());
    equal("schemas", List.of(ONE, OTHER, TWO), history.stream().map(row -> row.getSchemaInfo()).toList());
    for (var row : history) {
      equal("policy then", Compatibility.backward(), row.getCompatibility());
      equal("not in the future", true, row.getTimestamp() <= System.currentTimeMillis() + 1000);
    }
    var shown = new Schema.Parser().parse(history.get(2).getSchemaString());
    equal("as a text", AvroStory.TWO, shown);
  }

  private void references() {
    step("the groups that have a schema");
    client.addGroup("second", Pravega.properties(SerializationFormat.Any, Compatibility.allowAny(), true));
    var there = client.addSchema("second", TWO);
    equal("groups", Map.of(GROUP, SECOND, "second", there), client.getSchemaReferences(TWO));
    client.removeGroup("second");
    equal("groups", Map.of(GROUP, SECOND), client.getSchemaReferences(TWO));
  }

  private void deletion() {
    step("deletion");
    client.deleteSchemaVersion(GROUP, SECOND);
    client.deleteSchemaVersion(GROUP, SECOND);
    equal("the latest", FIRST, client.getLatestSchemaVersion(GROUP, "shop.Order").getVersionInfo());
    equal("still there for old events", TWO, client.getSchemaForVersion(GROUP, SECOND));
    equal("encodings too", TWO, client.getEncodingInfo(GROUP, new EncodingId(1)).getSchemaInfo());
    refused("not found by its text", ResourceNotFoundException.class, () -> client.getVersionForSchema(GROUP, TWO));
    equal("groups", Map.of(), client.getSchemaReferences(TWO));
    equal("registered again", Pravega.version("shop.Order", "Avro", 2, 3), client.addSchema(GROUP, TWO));
  }

  private static SchemaInfo info(Schema schema) {
    return AvroSchema.ofRecord(schema).getSchemaInfo();
  }

  private static ByteBuffer bytes(String text) {
    return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
  }
}
