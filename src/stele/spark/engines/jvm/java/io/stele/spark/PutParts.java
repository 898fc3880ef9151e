package io.stele.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;

/** Writers of values with parts. */
final class PutParts {
  /** Stands for a row without the column that is looked for. */
  private static final InternalRow NULLS = new GenericInternalRow(1);

  private PutParts() {}

  /** A record, from a struct of {@code width} columns; {@code ordinals} says where each field is, -1 for nowhere. */
  static final class Group extends Put {
    private final Put[] parts;
    private final int[] ordinals;
    private final int width;

    Group(String path, Put[] parts, int[] ordinals, int width) {
      super(path);
      this.parts = parts;
      this.ordinals = ordinals;
      this.width = width;
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      InternalRow row = in.getStruct(ordinal, width);
      for (int k = 0; k < parts.length; k++) {
        if (ordinals[k] < 0) {
          parts[k].put(NULLS, 0, out);
        } else {
          parts[k].put(row, ordinals[k], out);
        }
      }
    }
  }

  /** An array, in one block. */
  static final class Items extends Put {
    private final Put item;

    Items(String path, Put item) {
      super(path);
      this.item = item;
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      ArrayData items = in.getArray(ordinal);
      int count = items.numElements();
      if (count > 0) {
        out.varint(count);
        for (int k = 0; k < count; k++) {
          item.put(items, k, out);
        }
      }
      out.one(0);
    }
  }

  /** A map, in one block, in the order of the column. */
  static final class Entries extends Put {
    private final Put key;
    private final Put value;

    Entries(String path, Put key, Put value) {
      super(path);
      this.key = key;
      this.value = value;
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      MapData entries = in.getMap(ordinal);
      int count = entries.numElements();
      if (count > 0) {
        out.varint(count);
        ArrayData keys = entries.keyArray();
        ArrayData values = entries.valueArray();
        for (int k = 0; k < count; k++) {
          key.put(keys, k, out);
          value.put(values, k, out);
        }
      }
      out.one(0);
    }
  }

  /** A union of one type and null, or of null alone: {@code number} is -1 for a branch that is not there. */
  static final class Nullable extends Put {
    private final Put value;
    private final int number;
    private final int nullNumber;

    Nullable(String path, Put value, int number, int nullNumber) {
      super(path);
      this.value = value;
      this.number = number;
      this.nullNumber = nullNumber;
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      if (number < 0) {
        missing(out);
      } else {
        out.varint(number);
        value.present(in, ordinal, out);
      }
    }

    @Override
    void missing(Out out) {
      if (nullNumber < 0) {
        super.missing(out);
      }
      out.varint(nullNumber);
    }
  }

  /** A general union, from a struct of {@code width} members of which the first that is not null is written. */
  static final class Members extends Put {
    private final Put[] members;
    private final int[] ordinals;
    private final int[] numbers;
    private final int width;
    private final int nullNumber;

    Members(String path, Put[] members, int[] ordinals, int[] numbers, int width, int nullNumber) {
      super(path);
      this.members = members;
      this.ordinals = ordinals;
      this.numbers = numbers;
      this.width = width;
      this.nullNumber = nullNumber;
    }

    @Override
    void present(SpecializedGetters in, int ordinal, Out out) {
      InternalRow row = in.getStruct(ordinal, width);
      for (int k = 0; k < members.length; k++) {
        if (ordinals[k] >= 0 && !row.isNullAt(ordinals[k])) {
          out.varint(numbers[k]);
          members[k].present(row, ordinals[k], out);
          return;
        }
      }
      missing(out);
    }

    @Override
    void missing(Out out) {
      if (nullNumber < 0) {
        super.missing(out);
      }
      out.varint(nullNumber);
    }
  }
}
