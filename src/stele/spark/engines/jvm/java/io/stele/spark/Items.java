package io.stele.spark;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeArrayWriter;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeWriter;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.bitset.BitSetMethods;

/**
 * The elements of one array while it is being written. Spark's format wants their number first, which Avro says block
 * by block: an array of several blocks is written block by block, set aside, and joined at its end.
 */
final class Items {
  /** The elements of one block, out of the way of the next. */
  record Part(byte[] data, int count) {}

  final UnsafeArrayWriter writer;
  private final Width width;
  private int begin;
  private int count;

  /** Elements that go behind the last byte {@code holder} has written. */
  Items(UnsafeWriter holder, Width width) {
    this.writer = new UnsafeArrayWriter(holder, width.size);
    this.width = width;
  }

  void begin(int count) {
    this.begin = writer.cursor();
    this.count = count;
    writer.initialize(count);
  }

  /** Bytes since {@link #begin}. */
  int size() {
    return writer.cursor() - begin;
  }

  /** Set the elements aside, as if they had not been written. */
  Part part() {
    int from = begin - Platform.BYTE_ARRAY_OFFSET;
    byte[] data = Arrays.copyOfRange(writer.getBuffer(), from, from + size());
    writer.increaseCursor(-size());
    return new Part(data, count);
  }

  /** Write one array with the elements of all parts. */
  void join(List<Part> parts) {
    begin(parts.stream().mapToInt(Part::count).reduce(0, Math::addExact));
    int to = 0;
    for (Part part : parts) {
      int header = UnsafeArrayData.calculateHeaderPortionInBytes(part.count);
      for (int k = 0; k < part.count; k++, to++) {
        if (BitSetMethods.isSet(part.data, Platform.BYTE_ARRAY_OFFSET + 8L, k)) {
          width.setNull(writer, to);
        } else {
          width.copy(part.data, header + k * width.size, writer, to);
        }
      }
    }
  }
}
