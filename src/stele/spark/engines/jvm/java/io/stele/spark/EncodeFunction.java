package io.stele.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** A struct with one column, the value, to framed records. */
final class EncodeFunction implements UnboundFunction {
  private static final long serialVersionUID = 1L;

  private final String name;

  EncodeFunction(String name) {
    this.name = name;
  }

  @Override
  public BoundFunction bind(StructType arguments) {
    if (arguments.size() != 1 || !(arguments.apply(0).dataType() instanceof StructType)) {
      throw new UnsupportedOperationException("what is encoded is one struct, not " + arguments.simpleString());
    }
    return new Bound(name, (StructType) arguments.apply(0).dataType());
  }

  @Override
  public String name() {
    return "to_registry";
  }

  @Override
  public String description() {
    return "encodes framed records";
  }

  /**
   * For one type of column. The struct is the record itself; where the spec says {@code whole}, its only column is the
   * value, and {@code stays} that a null stays null, a tombstone.
   */
  public static final class Bound implements ScalarFunction<byte[]>, Serializable {
    private static final long serialVersionUID = 1L;

    private final String name;
    private final StructType type;
    private transient AtomicReference<Encoding> idle;

    Bound(String name, StructType type) {
      this.name = name;
      this.type = type;
    }

    @Override
    public DataType[] inputTypes() {
      return new DataType[] {type};
    }

    @Override
    public DataType resultType() {
      return DataTypes.BinaryType;
    }

    /** False, so that Spark encodes once what a plan mentions twice. */
    @Override
    public boolean isDeterministic() {
      return false;
    }

    @Override
    public String name() {
      return "to_registry";
    }

    @Override
    public String canonicalName() {
      return SteleCatalog.ENCODE + name + type.json();
    }

    /** What generated code calls. */
    public byte[] invoke(InternalRow row) {
      if (idle == null) {
        idle = new AtomicReference<>();
      }
      Encoding found = idle.getAndSet(null);
      Encoding encoding = found == null ? new Encoding(Spec.read(name), type) : found;
      byte[] frame = encoding.encode(row);
      idle.set(encoding);
      return frame;
    }

    @Override
    public byte[] produceResult(InternalRow arguments) {
      return invoke(arguments.getStruct(0, type.size()));
    }
  }

  /** Encodes rows, one after the other. For one thread at a time. */
  private static final class Encoding {
    private final int id;
    private final boolean whole;
    private final boolean stays;
    private final Put put;
    private final GenericInternalRow record = new GenericInternalRow(1);
    private final Out out = new Out();

    Encoding(JsonNode spec, StructType type) {
      id = spec.get("id").intValue();
      whole = spec.get("whole").booleanValue();
      stays = spec.get("stays").booleanValue();
      put = new Puts(spec.get("program")).root(whole ? type.apply(0).dataType() : type);
    }

    byte[] encode(InternalRow row) {
      if (whole && stays && row.isNullAt(0)) {
        return null;
      }
      out.begin(id);
      if (whole) {
        put.put(row, 0, out);
      } else {
        record.update(0, row);
        put.put(record, 0, out);
      }
      return out.bytes();
    }
  }
}
