import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.Base64;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import org.sparkproject.spark_core.protobuf.DescriptorProtos.FileDescriptorProto;
import org.sparkproject.spark_core.protobuf.Descriptors.Descriptor;
import org.sparkproject.spark_core.protobuf.Descriptors.DescriptorValidationException;
import org.sparkproject.spark_core.protobuf.Descriptors.FieldDescriptor;
import org.sparkproject.spark_core.protobuf.Descriptors.FileDescriptor;
import org.sparkproject.spark_core.protobuf.DynamicMessage;
import org.sparkproject.spark_core.protobuf.InvalidProtocolBufferException;
import org.sparkproject.spark_core.protobuf.Message;

/**
 * A catalog whose functions read Protobuf as a general library does: parse a message by its descriptor, then take each
 * field out of it into a row. What they read is in their names.
 */
public final class DynamicMessages implements FunctionCatalog {
  private String name;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public UnboundFunction loadFunction(Identifier function) throws NoSuchFunctionException {
    return new Reader(function.name());
  }

  /** Turns the value of a field, as Protobuf has it, into what Spark has. */
  private interface Convert {
    Object of(Object value);
  }

  /** Reads one type of message. */
  public static final class Reader implements UnboundFunction, ScalarFunction<InternalRow>, Serializable {
    private static final long serialVersionUID = 1L;

    private final String name;
    private final StructType type;
    private transient Descriptor descriptor;
    private transient Convert row;

    Reader(String name) {
      this.name = name;
      this.type = (StructType) DataType.fromJson(spec().get("type").textValue());
    }

    private JsonNode spec() {
      try {
        return new ObjectMapper().readTree(Base64.getUrlDecoder().decode(name));
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    private void open() {
      JsonNode spec = spec();
      try {
        FileDescriptorProto file = FileDescriptorProto.parseFrom(spec.get("file").binaryValue());
        FileDescriptor built = FileDescriptor.buildFrom(file, new FileDescriptor[0]);
        descriptor = built.findMessageTypeByName(spec.get("message").textValue());
      } catch (IOException | DescriptorValidationException e) {
        throw new IllegalArgumentException(e);
      }
      row = struct(descriptor, type);
    }

    @Override
    public BoundFunction bind(StructType arguments) {
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

    @Override
    public boolean isDeterministic() {
      return false;
    }

    @Override
    public String name() {
      return "dynamic_message";
    }

    @Override
    public String canonicalName() {
      return "bench." + name;
    }

    @Override
    public String description() {
      return "reads a message";
    }

    /** What generated code calls. */
    public InternalRow invoke(byte[] data) {
      if (descriptor == null) {
        open();
      }
      try {
        return (InternalRow) row.of(DynamicMessage.parseFrom(descriptor, data));
      } catch (InvalidProtocolBufferException e) {
        throw new UncheckedIOException(e);
      }
    }

    private static Convert struct(Descriptor message, StructType type) {
      int size = type.size();
      FieldDescriptor[] fields = new FieldDescriptor[size];
      Convert[] converts = new Convert[size];
      for (int k = 0; k < size; k++) {
        fields[k] = message.findFieldByName(type.apply(k).name());
        converts[k] = field(fields[k], type.apply(k).dataType());
      }
      return value -> {
        Message read = (Message) value;
        SpecificInternalRow row = new SpecificInternalRow(type);
        for (int k = 0; k < size; k++) {
          if (fields[k].hasPresence() && !read.hasField(fields[k])) {
            row.setNullAt(k);
          } else {
            row.update(k, converts[k].of(read.getField(fields[k])));
          }
        }
        return row;
      };
    }

    private static Convert field(FieldDescriptor field, DataType type) {
      if (type instanceof MapType map) {
        List<FieldDescriptor> parts = field.getMessageType().getFields();
        Convert key = value(parts.get(0), map.keyType());
        Convert item = value(parts.get(1), map.valueType());
        return value -> {
          List<?> entries = (List<?>) value;
          Object[] keys = new Object[entries.size()];
          Object[] items = new Object[keys.length];
          for (int k = 0; k < keys.length; k++) {
            Message entry = (Message) entries.get(k);
            keys[k] = key.of(entry.getField(parts.get(0)));
            items[k] = item.of(entry.getField(parts.get(1)));
          }
          return new ArrayBasedMapData(new GenericArrayData(keys), new GenericArrayData(items));
        };
      }
      if (type instanceof ArrayType array) {
        Convert item = value(field, array.elementType());
        return value -> {
          List<?> values = (List<?>) value;
          Object[] made = new Object[values.size()];
          for (int k = 0; k < made.length; k++) {
            made[k] = item.of(values.get(k));
          }
          return new GenericArrayData(made);
        };
      }
      return value(field, type);
    }

    private static Convert value(FieldDescriptor field, DataType type) {
      switch (field.getJavaType()) {
        case MESSAGE:
          return struct(field.getMessageType(), (StructType) type);
        case STRING:
        case ENUM:
          return value -> UTF8String.fromString(value.toString());
        default:
          return value -> value;
      }
    }
  }
}
