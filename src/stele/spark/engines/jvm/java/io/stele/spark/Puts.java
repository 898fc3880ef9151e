package io.stele.spark;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;

/**
 * Makes what writes the values of a column's type, by a program that Python compiled from the schema: a list of
 * instructions in which each names its parts by their places, parts first. See {@code programs.py}.
 */
final class Puts {
  private final JsonNode program;

  Puts(JsonNode program) {
    this.program = program;
  }

  /** What writes a whole value of a type. */
  Put root(DataType type) {
    return put(program.size() - 1, type, "");
  }

  private Put put(int place, DataType type, String path) {
    JsonNode code = program.get(place);
    String what = code.get(0).textValue();
    if (type instanceof NullType && !what.equals("branch") && !what.equals("null") && !what.equals("literal")) {
      // only nulls, and the schema has no null here: the first row says so
      return new PutParts.Nullable(path, null, -1, -1);
    }
    switch (what) {
      case "number":
        return number(code, type, path);
      case "text":
        int size = code.get(1).intValue();
        return type instanceof StringType ? new PutScalars.Text(path, size) : new PutScalars.Binary(path, size);
      case "uuid":
        return new PutScalars.UuidBytes(path);
      case "decimal":
        DecimalType decimal = (DecimalType) type;
        return new PutScalars.Unscaled(path, decimal.precision(), decimal.scale(), code.get(1).intValue());
      case "digits":
        int[] digits = {code.get(1).intValue(), code.get(2).intValue(), code.get(3).intValue()};
        return new PutScalars.Digits(path, digits[0], digits[1], digits[2]);
      case "literal":
        return new PutScalars.Literal(path, code.get(1));
      case "symbol":
        return new PutScalars.Symbol(path, Steps.symbols(code.get(1)));
      case "null":
        return new PutScalars.Nothing(path);
      case "group":
        return group(code, (StructType) type, path);
      case "array":
        Put item = put(code.get(1).intValue(), ((ArrayType) type).elementType(), path + "[]");
        return new PutParts.Items(path, item);
      case "map":
        MapType map = (MapType) type;
        Put key = put(code.get(1).intValue(), map.keyType(), path + "{key}");
        return new PutParts.Entries(path, key, put(code.get(2).intValue(), map.valueType(), path + "{}"));
      case "branch":
        return branch(code, type, path);
      case "members":
        return members(code, type, path);
      default:
        throw new IllegalArgumentException("no such instruction: " + code);
    }
  }

  private static Put number(JsonNode code, DataType type, String path) {
    switch (code.get(1).textValue()) {
      case "float":
        return new PutScalars.Float32(path);
      case "double":
        return new PutScalars.Float64(path, type instanceof FloatType);
      case "boolean":
        return new PutScalars.Bool(path);
      default:
        boolean narrow = code.get(1).textValue().equals("int");
        return new PutScalars.Number(path, getter(type), narrow, code.get(2).longValue(), code.get(3).longValue());
    }
  }

  private static PutScalars.Getter getter(DataType type) {
    if (type instanceof IntegerType || type instanceof DateType) {
      return (in, ordinal) -> in.getInt(ordinal);
    }
    if (type instanceof ShortType) {
      return (in, ordinal) -> in.getShort(ordinal);
    }
    if (type instanceof ByteType) {
      return (in, ordinal) -> in.getByte(ordinal);
    }
    // long, and both timestamps
    return (in, ordinal) -> in.getLong(ordinal);
  }

  private Put group(JsonNode code, StructType type, String path) {
    JsonNode names = code.get(1);
    Put[] parts = new Put[names.size()];
    int[] ordinals = new int[parts.length];
    for (int k = 0; k < parts.length; k++) {
      String name = names.get(k).textValue();
      String below = path.isEmpty() ? name : path + "." + name;
      parts[k] = member(code.get(2).get(k).intValue(), type, name, below, ordinals, k);
    }
    return new PutParts.Group(path, parts, ordinals, type.size());
  }

  /** What writes the column of a name, whose ordinal it notes; -1 where there is no such column. */
  private Put member(int place, StructType type, String name, String path, int[] ordinals, int k) {
    boolean there = type.getFieldIndex(name).isDefined();
    ordinals[k] = there ? type.fieldIndex(name) : -1;
    DataType given = there ? type.apply(ordinals[k]).dataType() : DataTypes.NullType;
    return put(place, given, path);
  }

  private Put branch(JsonNode code, DataType type, String path) {
    int number = code.get(1).intValue();
    boolean never = number < 0 || type instanceof NullType;
    Put value = never ? null : put(code.get(2).intValue(), type, path);
    return new PutParts.Nullable(path, value, never ? -1 : number, code.get(3).intValue());
  }

  private Put members(JsonNode code, DataType type, String path) {
    int nullNumber = code.get(4).intValue();
    if (type instanceof NullType) {
      return new PutParts.Nullable(path, null, -1, nullNumber);
    }
    StructType struct = (StructType) type;
    Put[] members = new Put[code.get(1).size()];
    int[] ordinals = new int[members.length];
    int[] numbers = new int[members.length];
    for (int k = 0; k < members.length; k++) {
      String name = code.get(1).get(k).textValue();
      numbers[k] = code.get(2).get(k).intValue();
      members[k] = member(code.get(3).get(k).intValue(), struct, name, path + "." + name, ordinals, k);
    }
    return new PutParts.Members(path, members, ordinals, numbers, struct.size(), nullNumber);
  }
}
