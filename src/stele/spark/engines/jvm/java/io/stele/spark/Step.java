package io.stele.spark;

import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeWriter;

/** Reads one value of the writer's type and puts it, as the reader's, into Spark's row format. */
abstract class Step {
  /** Read at the cursor and write at {@code ordinal}; a step that only reads past a value ignores both of the latter. */
  abstract void run(Cursor in, UnsafeWriter out, int ordinal);
}
