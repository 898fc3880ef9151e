package io.stele.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructType;

/** A binary column of framed records to a struct (value, schema_id, error). */
public final class DecodeFunction implements UnboundFunction, ScalarFunction<InternalRow>, Serializable {
  private static final long serialVersionUID = 1L;

  private final String name;
  private final String subject;
  private final DataType type;
  private final Width width;
  private final boolean failFast;
  private transient AtomicReference<Decoding> idle;

  DecodeFunction(String name) {
    JsonNode spec = Spec.read(name);
    this.name = name;
    this.subject = spec.get("subject").textValue();
    this.type = DataType.fromJson(spec.get("type").textValue());
    this.width = Width.of(spec.get("width").textValue());
    this.failFast = spec.get("fail_fast").booleanValue();
  }

  @Override
  public BoundFunction bind(StructType arguments) {
    boolean fits = arguments.size() == 1;
    if (fits) {
      DataType given = arguments.apply(0).dataType();
      fits = given instanceof BinaryType || given instanceof NullType;
    }
    if (!fits) {
      throw new UnsupportedOperationException("framed records are one binary column, not " + arguments.simpleString());
    }
    return this;
  }

  @Override
  public DataType[] inputTypes() {
    return new DataType[] {DataTypes.BinaryType};
  }

  @Override
  public DataType resultType() {
    return type;
  }

  /** False, though the same bytes give the same row: so that Spark decodes once what a plan mentions twice. */
  @Override
  public boolean isDeterministic() {
    return false;
  }

  @Override
  public String name() {
    return "from_registry(" + subject + ")";
  }

  @Override
  public String canonicalName() {
    return SteleCatalog.DECODE + name;
  }

  @Override
  public String description() {
    return "decodes framed records of " + subject;
  }

  /** What generated code calls. */
  public InternalRow invoke(byte[] frame) {
    Decoding decoding = take();
    // not given back after an error: half a row is in it
    InternalRow row = decoding.decode(frame);
    idle.set(decoding);
    return row;
  }

  @Override
  public InternalRow produceResult(InternalRow arguments) {
    return invoke(arguments.isNullAt(0) ? null : arguments.getBinary(0));
  }

  private Decoding take() {
    if (idle == null) {
      idle = new AtomicReference<>();
    }
    Decoding found = idle.getAndSet(null);
    return found == null ? new Decoding(Writers.of(name), width, failFast) : found;
  }
}
