package interop;

import com.google.common.collect.ImmutableMap;
import io.pravega.schemaregistry.client.SchemaRegistryClient;
import io.pravega.schemaregistry.client.SchemaRegistryClientConfig;
import io.pravega.schemaregistry.client.SchemaRegistryClientFactory;
import io.pravega.schemaregistry.contract.data.Compatibility;
import io.pravega.schemaregistry.contract.data.GroupProperties;
import io.pravega.schemaregistry.contract.data.SchemaInfo;
import io.pravega.schemaregistry.contract.data.SerializationFormat;
import io.pravega.schemaregistry.contract.data.VersionInfo;
import io.pravega.schemaregistry.serializer.shared.impl.SerializerConfig;
import io.pravega.schemaregistry.serializer.shared.impl.SerializerConfig.SerializerConfigBuilder;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Pravega's client and serializers. Arguments: the story, the URL; for one, events to read. */
public final class Pravega {
  private static final byte VERSION_OF_HEADER = 1;

  private Pravega() {}

  public static void main(String[] arguments) throws Exception {
    var client = client(arguments[1], "");
    switch (arguments[0]) {
      case "avro" -> new AvroStory(client).tell();
      case "json" -> new JsonStory(client).tell();
      case "protobuf" -> new ProtobufStory(client).tell();
      case "formats" -> new FormatsStory(client).tell();
      case "groups" -> new GroupsStory(client, client(arguments[1], "tenant/ü")).tell();
      case "schemas" -> new SchemasStory(client).tell();
      case "write" -> new Exchange(client).write();
      case "read" -> new Exchange(client).read(List.of(arguments).subList(2, arguments.length));
      default -> throw new IllegalArgumentException(arguments[0]);
    }
    client.close();
  }

  private static SchemaRegistryClient client(String url, String namespace) {
    var config = SchemaRegistryClientConfig.builder().schemaRegistryUri(URI.create(url)).build();
    return SchemaRegistryClientFactory.withNamespace(namespace, config);
  }

  /** What a serializer or deserializer of a group starts from. */
  static SerializerConfigBuilder config(SchemaRegistryClient client, String group) {
    return SerializerConfig.builder().groupId(group).registryClient(client);
  }

  static GroupProperties properties(SerializationFormat format, Compatibility policy, boolean manyTypes) {
    return new GroupProperties(format, policy, manyTypes, ImmutableMap.of("team", "sales"));
  }

  static VersionInfo version(String type, String format, int version, int id) {
    return new VersionInfo(type, format, version, id);
  }

  /** The encoding id in front of a serialized event, which stays as it is. */
  static int encodingId(ByteBuffer event) {
    var header = event.duplicate();
    Story.equal("version of the header", VERSION_OF_HEADER, header.get());
    return header.getInt();
  }

  static String text(SchemaInfo schema) {
    var data = schema.getSchemaData().duplicate();
    var bytes = new byte[data.remaining()];
    data.get(bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }
}
