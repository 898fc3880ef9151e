package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Label;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Duration;
import com.google.protobuf.GeneratedMessageV3;
import com.google.protobuf.Timestamp;
import io.pravega.client.stream.Serializer;
import io.pravega.schemaregistry.client.SchemaRegistryClient;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions.ResourceNotFoundException;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions.SchemaValidationFailedException;
import io.pravega.schemaregistry.contract.data.Compatibility;
import io.pravega.schemaregistry.contract.data.EncodingId;
import io.pravega.schemaregistry.contract.data.SerializationFormat;
import io.pravega.schemaregistry.serializer.protobuf.impl.ProtobufSerializerFactory;
import io.pravega.schemaregistry.serializer.protobuf.schemas.ProtobufSchema;
import io.pravega.schemaregistry.serializer.shared.codec.Codecs;
import java.util.List;
import java.util.Map;

/** Protobuf: as the story of Avro, with descriptors made here and with classes that protoc made. */
final class ProtobufStory {
  static final FileDescriptorSet ONE = files(field("amount", 1, Type.TYPE_INT32));
  private static final FileDescriptorSet TWO =
      files(field("amount", 1, Type.TYPE_INT32), field("currency", 2, Type.TYPE_STRING));
  private static final FileDescriptorSet BAD = files(field("amount", 1, Type.TYPE_STRING));
  private static final String GROUP = "protobuf-orders";
  private static final int HEADER = 5;

  private final SchemaRegistryClient client;

  ProtobufStory(SchemaRegistryClient client) {
    this.client = client;
  }

  void tell() throws Exception {
    step("register and evolve");
    client.addGroup(GROUP, Pravega.properties(SerializationFormat.Protobuf, Compatibility.backward(), false));
    var first = writer(ONE, Codecs.None).serialize(order(ONE, 42));
    var second = writer(TWO, Codecs.None).serialize(order(TWO, 43));
    equal("encoding ids", List.of(0, 1), List.of(Pravega.encodingId(first), Pravega.encodingId(second)));
    refused("amounts that are texts", SchemaValidationFailedException.class, () -> writer(BAD, Codecs.None));
    step("read with either schema, and with the one they were written with");
    for (var files : List.of(ONE, TWO)) {
      equal("the first", 42, amount(reader(files).deserialize(first.duplicate())));
      equal("the second", 43, amount(reader(files).deserialize(second.duplicate())));
    }
    equal("as written", order(TWO, 43).toString(), reader(null).deserialize(second.duplicate()).toString());
    refused("a reader that cannot read the latest", IllegalArgumentException.class, () -> reader(BAD));
    compressed();
    classes();
    step("delete");
    client.deleteSchemaVersion(GROUP, Pravega.version("shop.Order", "Protobuf", 1, 1));
    equal("left", 1, client.getSchemaVersions(GROUP, "shop.Order").size());
    equal("still readable", 43, amount(reader(ONE).deserialize(second)));
    client.removeGroup(GROUP);
    refused("the group", ResourceNotFoundException.class, () -> client.getGroupHistory(GROUP));
  }

  /** This serializer compresses all of its buffer, so that zero bytes follow the message; its reader refuses them. */
  private void compressed() throws Exception {
    step("compressed");
    for (var codec : List.of(Codecs.GzipCompressor, Codecs.SnappyCompressor)) {
      var event = writer(TWO, codec).serialize(order(TWO, 44));
      var info = client.getEncodingInfo(GROUP, new EncodingId(Pravega.encodingId(event)));
      equal("codec", codec.getCodec().getCodecType(), info.getCodecType());
      event.position(event.position() + HEADER);
      var data = codec.getCodec().decode(event, info.getCodecType().getProperties());
      var message = order(TWO, 44).toByteString();
      equal(codec.name(), message, ByteString.copyFrom(data, message.size()));
    }
  }

  private void classes() {
    step("classes, two of them in one group");
    var config = Pravega.config(client, "protobuf-classes").registerSchema(true)
        .createGroup(SerializationFormat.Protobuf, Compatibility.backward(), true).build();
    Map<Class<? extends GeneratedMessageV3>, ProtobufSchema<GeneratedMessageV3>> schemas = Map.of(
        Timestamp.class, ProtobufSchema.ofGeneratedMessageV3(Timestamp.class),
        Duration.class, ProtobufSchema.ofGeneratedMessageV3(Duration.class));
    var writer = ProtobufSerializerFactory.multiTypeSerializer(config, schemas);
    var reader = ProtobufSerializerFactory.multiTypeDeserializer(config, schemas);
    var moment = Timestamp.newBuilder().setSeconds(12).build();
    var span = Duration.newBuilder().setNanos(7).build();
    equal("moment", moment, reader.deserialize(writer.serialize(moment)));
    equal("span", span, reader.deserialize(writer.serialize(span)));
    equal("types", List.of("google.protobuf.Duration", "google.protobuf.Timestamp"),
        client.getSchemas("protobuf-classes").stream().map(row -> row.getVersionInfo().getType()).sorted().toList());
    client.removeGroup("protobuf-classes");
  }

  private Serializer<DynamicMessage> writer(FileDescriptorSet files, Codecs codec) {
    var config = Pravega.config(client, GROUP).registerSchema(true)
        .registerCodec(codec != Codecs.None).encoder(codec.getCodec()).build();
    return ProtobufSerializerFactory.serializer(config, ProtobufSchema.of("shop.Order", files));
  }

  private Serializer<DynamicMessage> reader(FileDescriptorSet files) {
    var schema = files == null ? null : ProtobufSchema.of("shop.Order", files);
    return ProtobufSerializerFactory.genericDeserializer(Pravega.config(client, GROUP).build(), schema);
  }

  static DynamicMessage order(FileDescriptorSet files, int amount) throws DescriptorValidationException {
    Descriptor type = FileDescriptor.buildFrom(files.getFile(0), new FileDescriptor[0]).findMessageTypeByName("Order");
    return DynamicMessage.newBuilder(type).setField(type.findFieldByName("amount"), amount).build();
  }

  static Object amount(DynamicMessage order) {
    return order.getField(order.getDescriptorForType().findFieldByName("amount"));
  }

  private static FileDescriptorSet files(FieldDescriptorProto... fields) {
    var type = DescriptorProto.newBuilder().setName("Order").addAllField(List.of(fields));
    var file = FileDescriptorProto.newBuilder().setName("shop/order.proto").setPackage("shop").setSyntax("proto3");
    return FileDescriptorSet.newBuilder().addFile(file.addMessageType(type)).build();
  }

  private static FieldDescriptorProto field(String name, int number, Type type) {
    return FieldDescriptorProto.newBuilder().setName(name).setNumber(number).setType(type)
        .setLabel(Label.LABEL_OPTIONAL).build();
  }
}
