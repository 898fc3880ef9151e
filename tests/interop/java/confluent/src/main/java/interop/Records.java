package interop;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.function.IntFunction;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/** Avro records with the id of their schema in front: a zero byte, four bytes of id, the data. */
final class Records {
  private static final int PREFIX = 5;

  private Records() {}

  static byte[] encode(int id, GenericRecord record) throws IOException {
    var bytes = new ByteArrayOutputStream();
    var out = new DataOutputStream(bytes);
    out.writeByte(0);
    out.writeInt(id);
    var encoder = EncoderFactory.get().directBinaryEncoder(out, null);
    new GenericDatumWriter<GenericRecord>(record.getSchema()).write(record, encoder);
    encoder.flush();
    return bytes.toByteArray();
  }

  /** Reads with the schema the id means, into the reader's. */
  static GenericRecord decode(byte[] data, IntFunction<String> schemas, Schema reader) throws IOException {
    var buffer = ByteBuffer.wrap(data);
    if (buffer.get() != 0) {
      throw new IOException("no id in front");
    }
    var writer = new Schema.Parser().parse(schemas.apply(buffer.getInt()));
    var decoder = DecoderFactory.get().binaryDecoder(data, PREFIX, data.length - PREFIX, null);
    return new GenericDatumReader<GenericRecord>(writer, reader).read(null, decoder);
  }
}
