package io.stele.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeWriter;
import org.apache.spark.unsafe.Platform;

/** Steps for values with parts. Each has a writer of its own behind that of the value around it, used again and again. */
final class Parts {
  private Parts() {}

  /** A record: the writer's fields in their order, each with its place among the reader's. */
  static final class Group extends Step {
    private final UnsafeRowWriter row;
    private final Step[] steps;
    private final int[] places;

    Group(UnsafeRowWriter row, Step[] steps, int[] places) {
      this.row = row;
      this.steps = steps;
      this.places = places;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      int begin = out.cursor();
      row.resetRowWriter();
      for (int k = 0; k < steps.length; k++) {
        steps[k].run(in, row, places[k]);
      }
      out.setOffsetAndSizeFromPreviousCursor(ordinal, begin);
    }
  }

  /** A record nobody asked for. */
  static final class PastGroup extends Step {
    private final Step[] steps;

    PastGroup(Step[] steps) {
      this.steps = steps;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      for (Step step : steps) {
        step.run(in, null, 0);
      }
    }
  }

  /** One branch of a general union: a struct in which all other members are null. */
  static final class Member extends Step {
    private final UnsafeRowWriter row;
    private final Width[] widths;
    private final int place;
    private final Step step;

    Member(UnsafeRowWriter row, Width[] widths, int place, Step step) {
      this.row = row;
      this.widths = widths;
      this.place = place;
      this.step = step;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      int begin = out.cursor();
      row.resetRowWriter();
      for (int k = 0; k < widths.length; k++) {
        if (k == place) {
          step.run(in, row, k);
        } else {
          widths[k].setNull(row, k);
        }
      }
      out.setOffsetAndSizeFromPreviousCursor(ordinal, begin);
    }
  }

  /** The writer's union: an index, then the step it names. */
  static final class Branch extends Step {
    private final Step[] steps;

    Branch(Step[] steps) {
      this.steps = steps;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      steps[in.index(steps.length, ErrorCode.BAD_BRANCH)].run(in, out, ordinal);
    }
  }

  /** A branch or an item the reader has no place for. */
  static final class Fail extends Step {
    private final ErrorCode code;

    Fail(ErrorCode code) {
      this.code = code;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      throw new RecordException(code, in.at);
    }
  }

  /** A record nobody asked for that contains itself: {@code step}, which runs this again. */
  static final class PastRecord extends Step {
    private static final int MOST_LEVELS = 100;

    private Step step;

    /** Set what it does: it has to exist before. */
    void complete(Step step) {
      this.step = step;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      if (in.levels == MOST_LEVELS) {
        throw new RecordException(ErrorCode.ENDLESS, in.at);
      }
      in.levels++;
      step.run(in, null, 0);
      in.levels--;
    }
  }

  /** An array. */
  static final class Array extends Step {
    private final Items items;
    private final Step item;
    private final int floor;

    Array(Items items, Step item, int floor) {
      this.items = items;
      this.item = item;
      this.floor = floor;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      int begin = out.cursor();
      int count = in.block(floor);
      block(in, count);
      if (count > 0) {
        int next = in.block(floor);
        if (next > 0) {
          List<Items.Part> parts = new ArrayList<>();
          for (parts.add(items.part()); next > 0; parts.add(items.part()), next = in.block(floor)) {
            block(in, next);
          }
          items.join(parts);
        }
      }
      out.setOffsetAndSizeFromPreviousCursor(ordinal, begin);
    }

    private void block(Cursor in, int count) {
      items.begin(count);
      for (int k = 0; k < count; k++) {
        item.run(in, items.writer, k);
      }
    }
  }

  /** A map: Spark has all keys in front of all values, which are therefore written beside and copied behind the keys. */
  static final class Map extends Step {
    private static final int HEAD = 8;

    private final Items keys;
    private final UnsafeRowWriter beside;
    private final Items values;
    private final Step value;
    private final Step key = new Scalars.Text(true, Steps.SIZED, true);
    private final int floor;

    Map(Items keys, UnsafeRowWriter beside, Items values, Step value, int floor) {
      this.keys = keys;
      this.beside = beside;
      this.values = values;
      this.value = value;
      this.floor = floor;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      int begin = out.cursor();
      out.grow(HEAD);
      out.increaseCursor(HEAD);
      int count = in.block(floor);
      block(in, count);
      if (count > 0) {
        int next = in.block(floor);
        if (next > 0) {
          several(in, next);
        }
      }
      Platform.putLong(out.getBuffer(), begin, keys.size());
      int size = values.size();
      out.grow(size);
      int from = beside.cursor() - size;
      Platform.copyMemory(beside.getBuffer(), from, out.getBuffer(), out.cursor(), size);
      out.increaseCursor(size);
      out.setOffsetAndSizeFromPreviousCursor(ordinal, begin);
    }

    private void block(Cursor in, int count) {
      beside.reset();
      keys.begin(count);
      values.begin(count);
      for (int k = 0; k < count; k++) {
        key.run(in, keys.writer, k);
        value.run(in, values.writer, k);
      }
    }

    private void several(Cursor in, int second) {
      List<Items.Part> allKeys = new ArrayList<>();
      List<Items.Part> allValues = new ArrayList<>();
      for (int next = second; next > 0; next = in.block(floor)) {
        allValues.add(values.part());
        allKeys.add(keys.part());
        block(in, next);
      }
      allValues.add(values.part());
      allKeys.add(keys.part());
      beside.reset();
      keys.join(allKeys);
      values.join(allValues);
    }
  }

  /** An array or map nobody asked for. */
  static final class PastItems extends Step {
    private final Step key;
    private final Step item;
    private final int floor;

    PastItems(Step key, Step item, int floor) {
      this.key = key;
      this.item = item;
      this.floor = floor;
    }

    @Override
    void run(Cursor in, UnsafeWriter out, int ordinal) {
      for (int count = in.block(floor); count > 0; count = in.block(floor)) {
        for (int k = 0; k < count; k++) {
          if (key != null) {
            key.run(in, null, 0);
          }
          item.run(in, null, 0);
        }
      }
    }
  }
}
