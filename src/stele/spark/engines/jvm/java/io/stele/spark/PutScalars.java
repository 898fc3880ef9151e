package io.stele.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** Writers of values without parts. */
final class PutScalars {
  private PutScalars() {}

  /** How to get an integer out of a column. */
  interface Getter {
    long get(SpecializedGetters in, int ordinal);
  }

  /** An int or long, in the writer's unit of time. */
  static final class Number extends Put {
    private final Getter getter;
    private final boolean narrow;
    private final long multiply;
    private final long divide;

    Number(String path, Getter getter, boolean narrow, long multiply, long divide) {
      super(path);
      this.getter = getter;
      this.narrow = narrow;
      this.multiply = multiply;
      this.divide = divide;
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      long value = getter.get(in, ordinal);
      if (multiply != 1) {
        value = Math.floorDiv(value, multiply);
      }
      if (divide > 1) {
        if (value > Long.MAX_VALUE / divide || value < -(Long.MAX_VALUE / divide)) {
          throw fault("a point in time is out of range for the schema's unit");
        }
        value *= divide;
      }
      if (narrow && value != (int) value) {
        throw fault(value + " does not fit an int");
      }
      out.varint(value);
    }
  }

  /** A float. */
  static final class Float32 extends Put {
    Float32(String path) {
      super(path);
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      out.four(Float.floatToRawIntBits(in.getFloat(ordinal)));
    }
  }

  /** A double, from a column of floats or doubles. */
  static final class Float64 extends Put {
    private final boolean narrow;

    Float64(String path, boolean narrow) {
      super(path);
      this.narrow = narrow;
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      double value = narrow ? in.getFloat(ordinal) : in.getDouble(ordinal);
      out.eight(Double.doubleToRawLongBits(value));
    }
  }

  /** A boolean. */
  static final class Bool extends Put {
    Bool(String path) {
      super(path);
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      out.one(in.getBoolean(ordinal) ? 1 : 0);
    }
  }

  /** Text. */
  static final class Text extends Put {
    private final int size;

    Text(String path, int size) {
      super(path);
      this.size = size;
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      UTF8String value = in.getUTF8String(ordinal);
      int length = value.numBytes();
      head(this, size, length, out);
      out.text(value, length);
    }

    /** The length in front, where there is one. */
    static void head(Put put, int size, int length, Out out) {
      if (size == Steps.SIZED) {
        out.varint(length);
      } else if (size >= 0 && size != length) {
        throw put.fault("more or fewer bytes than the schema has");
      }
    }
  }

  /** Bytes. */
  static final class Binary extends Put {
    private final int size;

    Binary(String path, int size) {
      super(path);
      this.size = size;
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      byte[] value = in.getBinary(ordinal);
      Text.head(this, size, value.length, out);
      out.bytes(value);
    }
  }

  /** The 16 bytes of a UUID, from its text in any of the usual spellings. */
  static final class UuidBytes extends Put {
    private static final int DIGITS = 32;

    UuidBytes(String path) {
      super(path);
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      String text = in.getUTF8String(ordinal).toString();
      String digits = text.replace("urn:", "").replace("uuid:", "").replaceAll("^[{}]+|[{}]+$|-", "");
      if (digits.length() != DIGITS || !digits.chars().allMatch(each -> Character.digit(each, 16) >= 0 && each < 128)) {
        throw fault("is not a UUID");
      }
      out.eight(Long.reverseBytes(Long.parseUnsignedLong(digits.substring(0, 16), 16)));
      out.eight(Long.reverseBytes(Long.parseUnsignedLong(digits.substring(16), 16)));
    }
  }

  /** The unscaled integer of a decimal, in the fewest bytes or in exactly {@code size}. */
  static final class Unscaled extends Put {
    private final int precision;
    private final int scale;
    private final int size;

    Unscaled(String path, int precision, int scale, int size) {
      super(path);
      this.precision = precision;
      this.scale = scale;
      this.size = size;
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      Decimal value = in.getDecimal(ordinal, precision, scale);
      if (precision <= Decimal.MAX_LONG_DIGITS()) {
        small(value.toUnscaledLong(), out);
      } else {
        BigInteger unscaled = value.toJavaBigDecimal().unscaledValue();
        byte[] least = unscaled.toByteArray();
        head(least.length, unscaled.signum(), out);
        out.bytes(least);
      }
    }

    private void small(long value, Out out) {
      int bits = Long.SIZE - Long.numberOfLeadingZeros(value < 0 ? ~value : value);
      int least = bits / 8 + 1;
      head(least, Long.signum(value), out);
      for (int k = least - 1; k >= 0; k--) {
        out.one((int) (value >> 8 * k));
      }
    }

    private void head(int least, int sign, Out out) {
      head(this, size, least, sign, out);
    }

    /** The length in front, or the repeated sign of a longer fixed. */
    static void head(Put put, int size, int least, int sign, Out out) {
      if (size == Steps.SIZED) {
        out.varint(least);
      }
      if (size >= 0 && least > size) {
        throw put.fault("more or fewer bytes than the schema has");
      }
      for (int k = least; k < size; k++) {
        out.one(sign < 0 ? 0xff : 0);
      }
    }
  }

  /** A decimal of more digits than Spark's have, from its text. */
  static final class Digits extends Put {
    private static final Pattern NUMBER =
        Pattern.compile("[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]{1,4})?");
    private static final int LONGEST = 1000;

    private final int precision;
    private final int scale;
    private final int size;

    Digits(String path, int precision, int scale, int size) {
      super(path);
      this.precision = precision;
      this.scale = scale;
      this.size = size;
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      String text = in.getUTF8String(ordinal).toString();
      if (text.length() > LONGEST || !NUMBER.matcher(text).matches()) {
        throw fault("is not a number");
      }
      BigInteger unscaled = unscaled(new BigDecimal(text).stripTrailingZeros());
      byte[] least = unscaled.toByteArray();
      Unscaled.head(this, size, least.length, unscaled.signum(), out);
      out.bytes(least);
    }

    private BigInteger unscaled(BigDecimal number) {
      if (number.scale() > scale) {
        throw fault("the number has more than " + scale + " digits behind the point");
      }
      if (number.signum() != 0 && number.precision() - number.scale() > precision - scale) {
        throw fault("the number has more than " + precision + " digits");
      }
      return number.setScale(scale).unscaledValue();
    }
  }

  /** What stands where the columns end: integers, whatever the column holds. */
  static final class Literal extends Put {
    private final long[] numbers;

    Literal(String path, JsonNode numbers) {
      super(path);
      this.numbers = new long[numbers.size()];
      for (int k = 0; k < this.numbers.length; k++) {
        this.numbers[k] = numbers.get(k).longValue();
      }
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      missing(out);
    }

    @Override
    void missing(Out out) {
      for (long number : numbers) {
        out.varint(number);
      }
    }
  }

  /** An enum. */
  static final class Symbol extends Put {
    private final Map<UTF8String, Integer> places = new HashMap<>();

    Symbol(String path, byte[][] symbols) {
      super(path);
      for (byte[] symbol : symbols) {
        places.put(UTF8String.fromBytes(symbol), places.size());
      }
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      Integer place = places.get(in.getUTF8String(ordinal));
      if (place == null) {
        throw fault("the enum does not have this symbol");
      }
      out.varint(place);
    }
  }

  /** Nothing, whatever the column holds. */
  static final class Nothing extends Put {
    Nothing(String path) {
      super(path);
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      // a null takes no bytes
    }

    @Override
    void missing(Out out) {
      // a null takes no bytes
    }
  }
}
