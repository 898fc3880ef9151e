package io.stele.spark;

import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeArrayWriter;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeWriter;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.Platform;

/**
 * How a value lies in Spark's rows and arrays: in place, of which arrays give it 1, 4 or 8 bytes, or as a pointer to
 * bytes behind. Rows keep room for a decimal of more than 18 digits even where it is null, and are compared byte by byte.
 */
enum Width {
  ONE(1),
  FOUR(4),
  EIGHT(8),
  ANY(8),
  DECIMAL(8);

  final int size;

  Width(int size) {
    this.size = size;
  }

  /** The width of the letter Python uses for it. */
  static Width of(String letter) {
    switch (letter) {
      case "1":
        return ONE;
      case "4":
        return FOUR;
      case "8":
        return EIGHT;
      case "d":
        return DECIMAL;
      default:
        return ANY;
    }
  }

  void setNull(UnsafeWriter out, int ordinal) {
    switch (this) {
      case ONE:
        out.setNull1Bytes(ordinal);
        break;
      case FOUR:
        out.setNull4Bytes(ordinal);
        break;
      case DECIMAL:
        out.write(ordinal, (Decimal) null, DecimalType.MAX_PRECISION(), 0);
        break;
      default:
        out.setNull8Bytes(ordinal);
    }
  }

  /** Copy an element that is not null and lies at {@code at} of the array {@code data}. */
  void copy(byte[] data, int at, UnsafeArrayWriter out, int ordinal) {
    long from = Platform.BYTE_ARRAY_OFFSET + (long) at;
    switch (this) {
      case ONE:
        out.write(ordinal, Platform.getByte(data, from));
        break;
      case FOUR:
        out.write(ordinal, Platform.getInt(data, from));
        break;
      case EIGHT:
        out.write(ordinal, Platform.getLong(data, from));
        break;
      default:
        long pointer = Platform.getLong(data, from);
        out.write(ordinal, data, (int) (pointer >>> 32), (int) pointer);
    }
  }
}
