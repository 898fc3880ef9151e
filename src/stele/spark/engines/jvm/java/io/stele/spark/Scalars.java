package io.stele.spark;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.UUID;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeWriter;
import org.apache.spark.sql.types.Decimal;

/** Steps for values without parts that are no numbers on the wire. */
final class Scalars {
  private Scalars() {}

  /** Bytes or text. */
  static final class Text extends Step {
    private final boolean wanted;
    private final int size;
    private final boolean utf8;

    Text(boolean wanted, int size, boolean utf8) {
      this.wanted = wanted;
      this.size = size;
      this.utf8 = utf8;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      int begin = in.at;
      int length = in.length(size);
      if (utf8 && !in.isUtf8(length)) {
        throw new RecordException(ErrorCode.BAD_UTF8, begin);
      }
      if (wanted) {
        out.write(ordinal, in.data, in.at, length);
      }
      in.at += length;
    }
  }

  /** A fixed of 16 bytes, shown as the text of a UUID. */
  static final class UuidText extends Step {
    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      ByteBuffer bytes = ByteBuffer.wrap(in.data, in.take(16), 16);
      String text = new UUID(bytes.getLong(), bytes.getLong()).toString();
      out.write(ordinal, text.getBytes(StandardCharsets.US_ASCII));
    }
  }

  /** A decimal of any length in bytes, as long as its value has no more digits than its precision. */
  static final class Unscaled extends Step {
    private final int precision;
    private final int scale;
    private final int size;
    private final BigInteger limit;
    private final long smallLimit;

    Unscaled(int precision, int scale, int size) {
      this.precision = precision;
      this.scale = scale;
      this.size = size;
      this.limit = BigInteger.TEN.pow(precision);
      this.smallLimit = precision <= Decimal.MAX_LONG_DIGITS() ? limit.longValueExact() : Long.MAX_VALUE;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      int begin = in.at;
      int length = in.length(size);
      if (length == 0) {
        throw new RecordException(ErrorCode.EMPTY_DECIMAL, begin);
      }
      if (length <= 8 && precision <= Decimal.MAX_LONG_DIGITS()) {
        small(in, begin, length, out, ordinal);
      } else {
        large(in, begin, length, out, ordinal);
      }
      in.at += length;
    }

    private void small(Cursor in, int begin, int length, UnsafeWriter out, int ordinal) {
      long value = in.data[in.at];
      for (int k = 1; k < length; k++) {
        value = value << 8 | in.data[in.at + k] & 0xff;
      }
      if (value >= smallLimit || value <= -smallLimit) {
        throw new RecordException(ErrorCode.DECIMAL_RANGE, begin);
      }
      out.write(ordinal, value);
    }

    private void large(Cursor in, int begin, int length, UnsafeWriter out, int ordinal) {
      BigInteger value = new BigInteger(in.data, in.at, length);
      if (value.abs().compareTo(limit) >= 0) {
        throw new RecordException(ErrorCode.DECIMAL_RANGE, begin);
      }
      if (precision <= Decimal.MAX_LONG_DIGITS()) {
        out.write(ordinal, value.longValueExact());
      } else {
        Decimal decimal = Decimal.apply(new scala.math.BigDecimal(new BigDecimal(value, scale)), precision, scale);
        out.write(ordinal, decimal, precision, scale);
      }
    }
  }

  /** A decimal of more digits than Spark's have, as text with all digits of its scale. */
  static final class Digits extends Step {
    private final int scale;
    private final int size;
    private final BigInteger limit;

    Digits(int precision, int scale, int size) {
      this.scale = scale;
      this.size = size;
      this.limit = BigInteger.TEN.pow(precision);
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      int begin = in.at;
      int length = in.length(size);
      if (length == 0) {
        throw new RecordException(ErrorCode.EMPTY_DECIMAL, begin);
      }
      BigInteger value = new BigInteger(in.data, in.at, length);
      if (value.abs().compareTo(limit) >= 0) {
        throw new RecordException(ErrorCode.DECIMAL_RANGE, begin);
      }
      out.write(ordinal, new BigDecimal(value, scale).toPlainString().getBytes(StandardCharsets.US_ASCII));
      in.at += length;
    }
  }

  /** An enum; a symbol that is null is one the reader cannot read. */
  static final class Symbol extends Step {
    private final byte[][] symbols;

    Symbol(byte[][] symbols) {
      this.symbols = symbols;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      int begin = in.at;
      byte[] symbol = symbols[in.index(symbols.length, ErrorCode.BAD_SYMBOL)];
      if (symbol == null) {
        throw new RecordException(ErrorCode.UNREADABLE_SYMBOL, begin);
      }
      out.write(ordinal, symbol);
    }
  }

  /** An enum nobody asked for. */
  static final class PastSymbol extends Step {
    private final int symbols;

    PastSymbol(int symbols) {
      this.symbols = symbols;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      in.index(symbols, ErrorCode.BAD_SYMBOL);
    }
  }

  /** No bytes; the value is null. */
  static final class Nothing extends Step {
    private final Width width;

    Nothing(Width width) {
      this.width = width;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      width.setNull(out, ordinal);
    }
  }

  /** No bytes, and nobody asked. */
  static final class PastNothing extends Step {
    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      // nothing to read and nothing to write
    }
  }

  /** A value the writer does not have, read from the reader's own bytes for it. */
  static final class Default extends Step {
    private final byte[] data;
    private final Step step;
    private final Cursor cursor = new Cursor();

    Default(byte[] data, Step step) {
      this.data = Arrays.copyOf(data, data.length);
      this.step = step;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      cursor.reset(data, 0);
      step.run(cursor, out, ordinal);
    }
  }
}
