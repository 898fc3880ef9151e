package io.stele.spark;

import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The functions of a session whose {@code spark.sql.catalog.stele} names this class. There is no list of them: what a
 * function does is in its name, see {@link Spec}.
 */
public final class SteleCatalog implements FunctionCatalog {
  static final String DECODE = "decode_";
  static final String ENCODE = "encode_";

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
    String asked = function.name();
    if (function.namespace().length == 0) {
      if (asked.startsWith(DECODE)) {
        return new DecodeFunction(asked.substring(DECODE.length()));
      }
      if (asked.startsWith(ENCODE)) {
        return new EncodeFunction(asked.substring(ENCODE.length()));
      }
      if (asked.equals(ProtocolFunction.NAME)) {
        return new ProtocolFunction();
      }
    }
    throw new NoSuchFunctionException(function);
  }
}
