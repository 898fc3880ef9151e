package io.stele.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Map;
import org.apache.spark.SparkEnv;

/**
 * The Python of this executor, asked about schema ids nobody pinned: it has the registry's client and the rules of
 * resolution. One process for one registry and reader, started at the first question, ended by itself when idle; a
 * question is a line with the id, its answer a line of JSON.
 */
final class SchemaLookup {
  private static final Map<String, SchemaLookup> OPEN = Collections.synchronizedMap(new Recent<>(16));

  private final String task;
  private final String python;
  private Process process;
  private Writer questions;
  private BufferedReader answers;

  private SchemaLookup(String task, String python) {
    this.task = task;
    this.python = python;
  }

  /** The one for a task, as Python pickled it. */
  static SchemaLookup of(JsonNode ask) {
    return OPEN.computeIfAbsent(ask.get("task").textValue(), task -> new SchemaLookup(task, python(ask)));
  }

  private static String python(JsonNode ask) {
    if (ask.hasNonNull("python")) {
      return ask.get("python").textValue();
    }
    SparkEnv env = SparkEnv.get();
    String configured = env == null ? null : env.conf().get("spark.pyspark.python", null);
    String inherited = System.getenv("PYSPARK_PYTHON");
    return configured != null ? configured : inherited != null ? inherited : "python3";
  }

  /** What Python knows of an id. */
  synchronized JsonNode about(int id) {
    try {
      String answer = process != null && process.isAlive() ? asked(id) : null;
      if (answer == null) {
        // never started, or ended by itself since the last question
        start();
        answer = asked(id);
      }
      if (answer == null) {
        throw new IOException("it ended without an answer, see the executor's log");
      }
      return Spec.line(answer);
    } catch (IOException e) {
      throw TaskErrors.raised(
          "schema id " + id + " was not pinned, and " + python + " on the executor cannot look it up: " + e.getMessage()
              + " (stele-registry must be installed there)",
          e);
    }
  }

  private String asked(int id) throws IOException {
    try {
      questions.write(id + "\n");
      questions.flush();
    } catch (IOException e) {
      return null;
    }
    return answers.readLine();
  }

  private void start() throws IOException {
    if (process != null) {
      process.destroy();
    }
    ProcessBuilder builder = new ProcessBuilder(python, "-m", "stele.spark.decode.schema_lookup_worker");
    builder.redirectError(ProcessBuilder.Redirect.INHERIT);
    process = builder.start();
    questions = new OutputStreamWriter(process.getOutputStream(), StandardCharsets.US_ASCII);
    answers = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    questions.write(task + "\n");
  }
}
