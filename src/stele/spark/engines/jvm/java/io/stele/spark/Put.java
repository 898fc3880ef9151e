package io.stele.spark;

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;

/** Writes one value of a row as Avro. */
abstract class Put {
  private final String path;

  /** {@code path} names the value in errors: fields with dots between them. */
  Put(String path) {
    this.path = path;
  }

  /** Write the value at {@code ordinal}. */
  final void put(SpecializedGetters in, int ordinal, Out out) {
    if (in.isNullAt(ordinal)) {
      missing(out);
    } else {
      present(in, ordinal, out);
    }
  }

  /** Write a value that is not null. */
  abstract void present(SpecializedGetters in, int ordinal, Out out);

  /** What a null becomes; an error unless the schema has null here. */
  void missing(Out out) {
    throw fault("null where the schema does not allow it");
  }

  RuntimeException fault(String what) {
    return TaskErrors.raised((path.isEmpty() ? "the value" : path) + ": " + what, null);
  }
}
