package interop;

import static interop.Story.equal;
import static interop.Story.step;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.schemarepo.CacheRepository;
import org.schemarepo.InMemoryCache;
import org.schemarepo.Repository;
import org.schemarepo.SchemaValidationException;
import org.schemarepo.Subject;
import org.schemarepo.SubjectConfig;

/** Events with the id of their schema in front, as a topic would hold them, by way of the client's cache. */
final class Events {
  static final String NAME = "events";
  private static final Schema ONE = SchemaBuilder.record("Order").fields().requiredInt("amount").endRecord();
  private static final Schema TWO = SchemaBuilder.record("Order").fields()
      .requiredInt("amount").name("currency").type().stringType().stringDefault("EUR").endRecord();

  private Events() {}

  static void tell(Repository client) throws IOException, SchemaValidationException {
    step("events, with a cache in between");
    var cached = new CacheRepository(client, new InMemoryCache());
    var subject = cached.register(NAME, new SubjectConfig.Builder().addValidator("full_transitive").build());
    var old = new GenericData.Record(ONE);
    old.put("amount", 42);
    var event = encode(subject, old);
    equal("the second schema", "1", subject.register(TWO.toString()).getId());
    equal("with the second schema", "EUR", decode(subject, event, TWO).get("currency").toString());
    equal("with the first schema", old, decode(subject, event, ONE));
    var fresh = new CacheRepository(client, new InMemoryCache()).lookup(NAME);
    equal("with an empty cache", old, decode(fresh, event, ONE));
  }

  private static byte[] encode(Subject subject, GenericRecord record) throws IOException, SchemaValidationException {
    var bytes = new ByteArrayOutputStream();
    new DataOutputStream(bytes).writeInt(Integer.parseInt(subject.register(record.getSchema().toString()).getId()));
    var encoder = EncoderFactory.get().directBinaryEncoder(bytes, null);
    new GenericDatumWriter<GenericRecord>(record.getSchema()).write(record, encoder);
    encoder.flush();
    return bytes.toByteArray();
  }

  private static GenericRecord decode(Subject subject, byte[] event, Schema reader) throws IOException {
    var id = ByteBuffer.wrap(event).getInt();
    var writer = new Schema.Parser().parse(subject.lookupById(String.valueOf(id)).getSchema());
    var decoder = DecoderFactory.get().binaryDecoder(event, Integer.BYTES, event.length - Integer.BYTES, null);
    return new GenericDatumReader<GenericRecord>(writer, reader).read(null, decoder);
  }
}
