package io.stele.spark;

import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeWriter;

/** Steps for Avro's numbers. The commonest have classes of their own, without tests per value. */
final class Numbers {
  private Numbers() {}

  /** The step for a number of the {@code wire} encoding in a column of the type {@code target}; none: read past. */
  static Step of(String wire, String target, long multiply, long divide, long limit) {
    switch (wire) {
      case "float":
        return target.equals("double") ? new FloatAsDouble() : new FloatStep(!target.isEmpty());
      case "double":
        return new DoubleStep(!target.isEmpty());
      case "boolean":
        return new BooleanStep(!target.isEmpty());
      default:
        return integer(wire.equals("int"), target, multiply, divide, limit);
    }
  }

  private static Step integer(boolean narrow, String target, long multiply, long divide, long limit) {
    if (target.isEmpty()) {
      return new PastInteger(narrow);
    }
    boolean plain = multiply == 1 && divide == 1 && limit == 0;
    if (plain && target.equals("long")) {
      return narrow ? new IntAsLong() : new LongStep();
    }
    if (plain && target.equals("int")) {
      return new IntStep();
    }
    return new Converted(narrow, target, multiply, divide, limit);
  }

  private static final class LongStep extends Step {
    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      out.write(ordinal, in.varint(in.at));
    }
  }

  private static final class IntStep extends Step {
    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      out.write(ordinal, in.int32());
    }
  }

  private static final class IntAsLong extends Step {
    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      out.write(ordinal, (long) in.int32());
    }
  }

  private static final class PastInteger extends Step {
    private final boolean narrow;

    PastInteger(boolean narrow) {
      this.narrow = narrow;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      if (narrow) {
        in.int32();
      } else {
        in.varint(in.at);
      }
    }
  }

  /** An integer in another unit of time, within a limit, or as a floating-point number. */
  private static final class Converted extends Step {
    private final boolean narrow;
    private final String target;
    private final long multiply;
    private final long divide;
    private final long limit;
    private final long largest;

    Converted(boolean narrow, String target, long multiply, long divide, long limit) {
      this.narrow = narrow;
      this.target = target;
      this.multiply = multiply;
      this.divide = divide;
      this.limit = limit;
      this.largest = Long.MAX_VALUE / multiply;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      int begin = in.at;
      long value = narrow ? in.int32() : in.varint(begin);
      if (multiply > 1 && (value > largest || value < -largest)) {
        throw new RecordException(ErrorCode.OUT_OF_RANGE, begin);
      }
      value = Math.floorDiv(value * multiply, divide);
      if (limit > 0 && (value < 0 || value >= limit)) {
        throw new RecordException(ErrorCode.OUT_OF_RANGE, begin);
      }
      switch (target) {
        case "int":
          out.write(ordinal, (int) value);
          break;
        case "long":
          out.write(ordinal, value);
          break;
        case "float":
          out.write(ordinal, (float) (double) value);
          break;
        default:
          out.write(ordinal, (double) value);
      }
    }
  }

  private static final class FloatStep extends Step {
    private final boolean wanted;

    FloatStep(boolean wanted) {
      this.wanted = wanted;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      float value = in.float32();
      if (wanted) {
        out.write(ordinal, value);
      }
    }
  }

  private static final class FloatAsDouble extends Step {
    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      out.write(ordinal, (double) in.float32());
    }
  }

  private static final class DoubleStep extends Step {
    private final boolean wanted;

    DoubleStep(boolean wanted) {
      this.wanted = wanted;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      double value = in.float64();
      if (wanted) {
        out.write(ordinal, value);
      }
    }
  }

  private static final class BooleanStep extends Step {
    private final boolean wanted;

    BooleanStep(boolean wanted) {
      this.wanted = wanted;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      boolean value = in.bool();
      if (wanted) {
        out.write(ordinal, value);
      }
    }
  }
}
