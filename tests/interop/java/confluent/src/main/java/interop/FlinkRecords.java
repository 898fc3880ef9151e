package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import org.apache.flink.avro.shaded.org.apache.avro.Schema;
import org.apache.flink.avro.shaded.org.apache.avro.SchemaBuilder;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericData;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericRecord;
import org.apache.flink.formats.avro.registry.confluent.ConfluentRegistryAvroDeserializationSchema;
import org.apache.flink.formats.avro.registry.confluent.ConfluentRegistryAvroSerializationSchema;

/** The serializer and the deserializer of Flink, which register and look up by way of Confluent's client. */
final class FlinkRecords {
  private static final String SUBJECT = "flink-value";
  private static final Schema ONE = SchemaBuilder.record("Order").fields().requiredInt("amount").endRecord();
  private static final Schema TWO = SchemaBuilder.record("Order").fields()
      .requiredInt("amount").name("currency").type().stringType().stringDefault("EUR").endRecord();
  private static final Schema BAD = SchemaBuilder.record("Order").fields().requiredString("amount").endRecord();

  private FlinkRecords() {}

  static void tell(String url) throws Exception {
    var client = new CachedSchemaRegistryClient(url, 10);
    step("register, evolve, encode");
    var first = encode(url, order(ONE, 42));
    var second = encode(url, order(TWO, 43));
    equal("versions", 2, client.getAllVersions(SUBJECT).size());
    equal("id in front", client.getSchemaMetadata(SUBJECT, 1).getId(), ByteBuffer.wrap(first, 1, Integer.BYTES).getInt());
    refused("incompatible", IOException.class, () -> encode(url, new GenericData.Record(BAD)));
    step("decode");
    equal("the first with the second", "EUR", decode(url, first, TWO).get("currency").toString());
    equal("the second with the first", 43, decode(url, second, ONE).get("amount"));
    step("delete");
    client.deleteSubject(SUBJECT);
    client.deleteSubject(SUBJECT, true);
    refused("an id nobody knows", IOException.class, () -> decode(url, second, ONE));
  }

  private static byte[] encode(String url, GenericRecord record) {
    return ConfluentRegistryAvroSerializationSchema.forGeneric(SUBJECT, record.getSchema(), url, Map.of()).serialize(record);
  }

  private static GenericRecord decode(String url, byte[] data, Schema reader) throws IOException {
    return ConfluentRegistryAvroDeserializationSchema.forGeneric(reader, url).deserialize(data);
  }

  private static GenericRecord order(Schema schema, int amount) {
    var record = new GenericData.Record(schema);
    record.put("amount", amount);
    if (schema == TWO) {
      record.put("currency", "USD");
    }
    return record;
  }
}
