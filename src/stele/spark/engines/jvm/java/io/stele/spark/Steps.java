package io.stele.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeWriter;

/**
 * Makes steps of one writer's program, which Python compiled: a list of instructions in which each names its parts by
 * their places, parts first. See {@code programs.py} for the instructions.
 */
final class Steps {
  /** A size: the length stands in front. */
  static final int SIZED = -1;

  /** A size: all that is left. */
  static final int REST = -2;

  private final JsonNode program;
  private final Map<Integer, Parts.PastRecord> routines = new HashMap<>();

  Steps(JsonNode program) {
    this.program = program;
  }

  /** The step for the whole value; its parts share the memory of {@code out}. */
  Step root(UnsafeWriter out) {
    return step(program.size() - 1, out);
  }

  private Step step(int place, UnsafeWriter out) {
    JsonNode code = program.get(place);
    switch (code.get(0).textValue()) {
      case "number":
        return Numbers.of(
            code.get(1).textValue(),
            code.get(2).textValue(),
            code.get(3).longValue(),
            code.get(4).longValue(),
            code.get(5).longValue());
      case "text":
        return new Scalars.Text(code.get(1).booleanValue(), code.get(2).intValue(), code.get(3).booleanValue());
      case "uuid":
        return new Scalars.UuidText();
      case "decimal":
        return new Scalars.Unscaled(code.get(1).intValue(), code.get(2).intValue(), code.get(3).intValue());
      case "digits":
        return new Scalars.Digits(code.get(1).intValue(), code.get(2).intValue(), code.get(3).intValue());
      case "symbol":
        return new Scalars.Symbol(symbols(code.get(1)));
      case "past symbol":
        return new Scalars.PastSymbol(code.get(1).intValue());
      case "null":
        return new Scalars.Nothing(Width.of(code.get(1).textValue()));
      case "past null":
        return new Scalars.PastNothing();
      case "default":
        return new Scalars.Default(bytes(code.get(1)), step(code.get(2).intValue(), out));
      default:
        return withParts(code, out);
    }
  }

  private Step withParts(JsonNode code, UnsafeWriter out) {
    switch (code.get(0).textValue()) {
      case "group":
        UnsafeRowWriter row = new UnsafeRowWriter(out, code.get(1).intValue());
        return new Parts.Group(row, steps(code.get(3), row), places(code.get(2)));
      case "past group":
        return new Parts.PastGroup(steps(code.get(1), out));
      case "member":
        Width[] widths = widths(code.get(1));
        UnsafeRowWriter members = new UnsafeRowWriter(out, widths.length);
        return new Parts.Member(members, widths, code.get(2).intValue(), step(code.get(3).intValue(), members));
      case "branch":
        return new Parts.Branch(steps(code.get(1), out));
      case "fail":
        return new Parts.Fail(ErrorCode.of(code.get(1).intValue()));
      case "past record":
        Parts.PastRecord routine = new Parts.PastRecord();
        routines.put(code.get(1).intValue(), routine);
        routine.complete(step(code.get(2).intValue(), out));
        return routine;
      case "past again":
        return routines.get(code.get(1).intValue());
      case "array":
        Items items = new Items(out, Width.of(code.get(1).textValue()));
        return new Parts.Array(items, step(code.get(3).intValue(), items.writer), code.get(2).intValue());
      case "map":
        return map(code, out);
      case "past array":
        return new Parts.PastItems(null, step(code.get(2).intValue(), out), code.get(1).intValue());
      case "past map":
        Step key = new Scalars.Text(false, SIZED, false);
        return new Parts.PastItems(key, step(code.get(2).intValue(), out), code.get(1).intValue());
      default:
        throw new IllegalArgumentException("no such instruction: " + code);
    }
  }

  private Step map(JsonNode code, UnsafeWriter out) {
    UnsafeRowWriter beside = new UnsafeRowWriter(1);
    Items values = new Items(beside, Width.of(code.get(1).textValue()));
    Step value = step(code.get(3).intValue(), values.writer);
    return new Parts.Map(new Items(out, Width.ANY), beside, values, value, code.get(2).intValue());
  }

  private Step[] steps(JsonNode places, UnsafeWriter out) {
    Step[] steps = new Step[places.size()];
    for (int k = 0; k < steps.length; k++) {
      steps[k] = step(places.get(k).intValue(), out);
    }
    return steps;
  }

  private static int[] places(JsonNode numbers) {
    int[] places = new int[numbers.size()];
    for (int k = 0; k < places.length; k++) {
      places[k] = numbers.get(k).intValue();
    }
    return places;
  }

  private static Width[] widths(JsonNode letters) {
    Width[] widths = new Width[letters.size()];
    for (int k = 0; k < widths.length; k++) {
      widths[k] = Width.of(letters.get(k).textValue());
    }
    return widths;
  }

  /** The UTF-8 of texts; null stays null. */
  static byte[][] symbols(JsonNode texts) {
    byte[][] symbols = new byte[texts.size()][];
    for (int k = 0; k < symbols.length; k++) {
      symbols[k] = texts.get(k).isNull() ? null : texts.get(k).textValue().getBytes(StandardCharsets.UTF_8);
    }
    return symbols;
  }

  private static byte[] bytes(JsonNode base64) {
    try {
      return base64.binaryValue();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
