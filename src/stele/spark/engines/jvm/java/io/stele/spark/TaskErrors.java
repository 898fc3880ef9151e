package io.stele.spark;

import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import scala.collection.immutable.Map;

/** Errors that fail a task, in the form Spark hands to its clients as they are. */
final class TaskErrors {
  private TaskErrors() {}

  /** The error of the class that SQL's raise_error uses. */
  static SparkRuntimeException raised(String text, Throwable cause) {
    return new SparkRuntimeException(
        "USER_RAISED_EXCEPTION",
        new Map.Map1<>("errorMessage", text),
        cause,
        new QueryContext[0],
        "");
  }
}
